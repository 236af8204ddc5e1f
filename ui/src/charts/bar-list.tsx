import { Link } from 'wouter'

export type Bar = {
  readonly key: string
  readonly label: string
  readonly value: number
  /** The value as text. */
  readonly shown: string
  readonly note?: string
  readonly href?: string | undefined
}

/** Values by name, with a bar relative to the largest. */
export function BarList({ label, bars }: { label: string; bars: readonly Bar[] }) {
  const most = Math.max(...bars.map(({ value }) => value), 0)
  return (
    <ul aria-label={label} className="space-y-1">
      {bars.map((bar) => (
        <li key={bar.key} className="relative">
          <span
            aria-hidden
            className="absolute inset-y-0 left-0 rounded-md bg-accent-soft"
            style={{ width: most === 0 ? 0 : `${Math.max(1, (bar.value / most) * 100)}%` }}
          />
          <span className="relative flex min-h-8 items-center gap-3 px-2.5 text-sm">
            {bar.href === undefined ? (
              <span className="min-w-0 flex-1 truncate">{bar.label}</span>
            ) : (
              <Link href={bar.href} className="min-w-0 flex-1 truncate hover:underline">
                {bar.label}
              </Link>
            )}
            {bar.note && <span className="text-xs text-ink-soft tabular">{bar.note}</span>}
            <span className="font-medium tabular">{bar.shown}</span>
          </span>
        </li>
      ))}
    </ul>
  )
}
