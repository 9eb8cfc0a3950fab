// Before anything is drawn: the theme that was chosen here, so that the page never flashes in the other one.
try {
  const chosen = localStorage.getItem("concorde-trio-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // A browser that keeps nothing follows the system.
}
