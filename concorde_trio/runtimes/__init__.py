"""What executes a run: any async function, or any agent program."""
