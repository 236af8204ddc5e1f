import { CircleAlert, CircleCheck, CircleSlash } from 'lucide-react'
import type { CelEvaluation } from '../../../api/tools/cel-evaluation.ts'
import { Badge } from '../../../components/feedback/badge.tsx'

/** The value of the expression, or its error. */
export function Result({ result, busy }: { result: CelEvaluation | undefined; busy: boolean }) {
  return (
    <div aria-live="polite" aria-busy={busy} className={busy ? 'opacity-60' : ''}>
      {result === undefined ? (
        <p className="text-sm text-ink-faint">Enter an expression to see its value.</p>
      ) : result.error === undefined ? (
        <Value value={result.value} type={result.type} />
      ) : (
        <div className="flex gap-2.5 rounded-lg bg-bad-soft px-3.5 py-3 text-sm">
          <CircleAlert className="mt-0.5 size-4 shrink-0 text-bad" aria-hidden />
          <div className="min-w-0">
            <div className="font-medium break-words">{result.error.message}</div>
            {result.error.line !== undefined && (
              <div className="text-xs text-ink-soft">
                Line {result.error.line}, column {result.error.column}
              </div>
            )}
          </div>
        </div>
      )}
    </div>
  )
}

function Value({ value, type }: { value: unknown; type: string }) {
  const isBoolean = typeof value === 'boolean'
  const Icon = value === true ? CircleCheck : CircleSlash
  return (
    <div className="space-y-2">
      <div className="flex items-center gap-2.5">
        {isBoolean && <Icon className={value ? 'size-5 text-good' : 'size-5 text-ink-faint'} aria-hidden />}
        {isBoolean && <span className="text-lg font-semibold">{String(value)}</span>}
        <Badge>{type}</Badge>
      </div>
      {!isBoolean && (
        <section
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
          tabIndex={0}
          aria-label="Value"
          className="max-h-80 overflow-auto rounded-lg border border-line bg-sunken p-3"
        >
          <pre className="font-mono text-xs leading-relaxed break-words whitespace-pre-wrap">
            {JSON.stringify(value, null, 2)}
          </pre>
        </section>
      )}
    </div>
  )
}
