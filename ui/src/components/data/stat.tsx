import type { ReactNode } from 'react'

/** One figure with its name, an optional comparison and an optional small plot. */
export function Stat({
  name,
  value,
  note,
  plot,
}: {
  name: string
  value: ReactNode
  note?: ReactNode
  plot?: ReactNode
}) {
  return (
    <div className="flex min-w-0 flex-col justify-between gap-2 rounded-xl border border-line bg-surface px-4 py-3.5 shadow-card">
      <div>
        <div className="text-xs text-ink-faint">{name}</div>
        <div className="mt-0.5 text-2xl font-semibold tracking-tight tabular">{value}</div>
      </div>
      {plot}
      {note && <div className="text-xs text-ink-soft">{note}</div>}
    </div>
  )
}
