"""What every session store must do: one async function a sentence, each given a callable that makes a fresh store."""
