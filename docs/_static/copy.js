// A button on every block of code that copies it, without the prompts of examples.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight")) {
    const code = block.querySelector("pre");
    if (!code || block.closest(".cell_output")) continue;
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy this code");
    button.addEventListener("click", async () => {
      const lines = code.innerText.split("\n");
      const example = lines.some((line) => line.startsWith(">>> "));
      const kept = example
        ? lines.filter((line) => /^(>>>|\.\.\.)( |$)/.test(line)).map((line) => line.slice(4))
        : lines.map((line) => line.replace(/^\$ /, ""));
      await navigator.clipboard.writeText(kept.join("\n").trimEnd() + "\n");
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    block.append(button);
  }
});
