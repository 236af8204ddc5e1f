/** Text with code between backticks, as descriptions of the schema contain it. */
export function Prose({ text }: { text: string }) {
  return text.split('`').map((part, index) =>
    index % 2 === 0 ? (
      part
    ) : (
      <code key={index} className="rounded bg-sunken px-1 text-[0.92em] break-words text-ink-soft">
        {part}
      </code>
    ),
  )
}
