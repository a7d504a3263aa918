"""The shape of one generated exercise."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Task:
    """One exercise with its exact answer.

    ``instruction`` and ``payload`` make a chat message; ``labels`` name the
    payload and the answer in the raw completion form.
    """

    category: str
    instruction: str
    payload: str
    answer: str
    labels: tuple[str, str]
    follow_ups: tuple[tuple[str, str], ...] = field(default=())

    def chat_text(self) -> str:
        """Return the user message: the instruction, then the payload."""
        if not self.payload:
            return self.instruction
        joint = "\n" if "\n" in self.payload or len(self.instruction) % 2 else " "
        return f"{self.instruction}{joint}{self.payload}"

    def raw_prompt(self) -> str:
        """Return the completion prompt, up to where the answer starts."""
        payload = self.payload or self.instruction
        joint = "\n" if "\n" in payload else " "
        return f"{self.labels[0]}:{joint}{payload}\n{self.labels[1]}:"

    def told_prompt(self) -> str:
        """Return a completion prompt that starts with the instruction."""
        head = f"Instruction: {self.instruction}\n"
        joint = "\n" if "\n" in self.payload else " "
        middle = f"Input:{joint}{self.payload}\n" if self.payload else ""
        return f"{head}{middle}Output:"

    def raw_answer(self) -> str:
        """Return the answer with the white space that parts it from its label."""
        return ("\n" if "\n" in self.answer else " ") + self.answer
