// The token stands behind the # of the printed link, which no browser sends anywhere. It goes into the body of one
// request and out of the address bar and the history; what is left is a cookie that no script can read.
"use strict";

const form = document.getElementById("login");
const said = document.getElementById("said");

async function logIn(token) {
  said.textContent = "";
  try {
    const answer = await fetch(form.action, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token }),
      credentials: "same-origin",
    });
    if (answer.ok) {
      location.replace(new URL("dashboard", form.action));
      return;
    }
    said.textContent = (await answer.json()).detail;
  } catch (error) {
    said.textContent = "The server does not answer; is it running?";
  }
}

function readLink() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    history.replaceState(null, "", location.pathname);
    logIn(token);
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  logIn(form.elements.token.value.trim());
});
addEventListener("hashchange", readLink);
readLink();
