import type { ReactNode } from 'react'

/** Names and values of one thing, in two columns where there is room. Absent values are skipped. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className="grid grid-cols-1 gap-x-8 gap-y-2.5 text-sm sm:grid-cols-[repeat(auto-fill,minmax(15rem,1fr))]">
      {facts
        .filter(([, value]) => value !== undefined && value !== null && value !== '')
        .map(([name, value]) => (
          <div key={name} className="min-w-0">
            <dt className="text-xs text-ink-faint">{name}</dt>
            <dd className="break-words">{value}</dd>
          </div>
        ))}
    </dl>
  )
}
