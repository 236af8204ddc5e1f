const shown = 2

/** The first of several short texts, and the number of further ones. */
export function Texts({
  texts,
  none,
  code = false,
}: {
  texts: readonly string[]
  none: string
  code?: boolean
}) {
  if (texts.length === 0) return <span className="text-ink-faint">{none}</span>
  const more = texts.length - shown
  return (
    <span className="block max-w-80" title={texts.slice(0, 20).join('\n')}>
      {texts.slice(0, shown).map((text, index) => (
        <span key={index} className={code ? 'block truncate font-mono text-xs' : 'block truncate'}>
          {text}
        </span>
      ))}
      {more > 0 && <span className="text-ink-faint">and {more} more</span>}
    </span>
  )
}
