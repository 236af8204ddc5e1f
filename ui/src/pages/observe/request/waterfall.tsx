import { classNames } from '../../../components/class-names.ts'
import { formatDuration } from '../../../format/time.ts'
import type { Span } from './spans.ts'

const fills: Record<Span['tone'], string> = {
  gateway: 'bg-accent',
  upstream: 'bg-info',
  failed: 'bg-bad',
  stream: 'bg-good',
}

const ticks = [0, 0.25, 0.5, 0.75, 1]

/** Phases of a request on a common axis of time. */
export function Waterfall({ spans, totalMs }: { spans: readonly Span[]; totalMs: number }) {
  const end = Math.max(totalMs, ...spans.map(({ endMs }) => endMs), 0.01)
  return (
    <div className="text-xs">
      <div className="mb-1 hidden grid-cols-[11rem_1fr_5rem] gap-3 text-ink-faint sm:grid" aria-hidden>
        <span />
        <span className="flex justify-between tabular">
          {ticks.map((tick) => (
            <span key={tick}>{tick === 0 ? '0' : formatDuration(end * tick)}</span>
          ))}
        </span>
        <span />
      </div>
      <ul aria-label="Phases of the request" className="space-y-1">
        {spans.map((span, index) => (
          <SpanRow key={index} span={span} end={end} />
        ))}
      </ul>
    </div>
  )
}

function SpanRow({ span, end }: { span: Span; end: number }) {
  const { label, note, startMs, endMs, markMs, tone, isPart } = span
  const percent = (ms: number) => `${(ms / end) * 100}%`
  const lengthMs = endMs - startMs
  return (
    <li className="grid grid-cols-[1fr_auto] items-center gap-x-3 sm:grid-cols-[11rem_1fr_5rem]">
      <span className={classNames('min-w-0 truncate', isPart ? 'pl-3 text-ink-faint' : 'font-medium')}>
        {label}
        {note && <span className="ml-1.5 font-normal text-ink-faint">{note}</span>}
      </span>
      <span aria-hidden className="relative h-5 rounded bg-sunken max-sm:col-span-2 max-sm:row-start-2">
        <span
          className={classNames(
            'absolute inset-y-1 rounded-[3px]',
            fills[tone],
            (isPart || markMs !== undefined) && 'opacity-50',
          )}
          style={{ left: percent(startMs), width: `max(2px, ${percent(lengthMs)})` }}
        />
        {markMs !== undefined && markMs < endMs && (
          <span
            className={classNames('absolute inset-y-1 rounded-r-[3px]', fills[tone])}
            style={{ left: percent(markMs), width: percent(endMs - markMs) }}
          />
        )}
      </span>
      <span className="text-right tabular">
        <span className="sr-only">starts at {formatDuration(startMs)}, takes </span>
        {formatDuration(lengthMs)}
      </span>
    </li>
  )
}
