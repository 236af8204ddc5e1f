import { CircleAlert, CircleCheck, TriangleAlert } from 'lucide-react'
import { Link } from 'wouter'
import type { Problem } from '../../api/state.ts'
import { classNames } from '../../components/class-names.ts'
import { Card } from '../../components/layout/card.tsx'
import { formatAgo, formatDateTime } from '../../format/time.ts'

const maxMistakes = 8

/** What is wrong, errors first, each with a link to its place. */
export function Problems({ problems }: { problems: readonly Problem[] }) {
  if (problems.length === 0)
    return (
      <div role="status" className="flex items-center gap-2.5 rounded-xl bg-good-soft px-4 py-3 text-sm">
        <CircleCheck className="size-4 text-good" aria-hidden />
        No problems found
      </div>
    )
  const sorted = problems.toSorted((one, other) => rankOf(one) - rankOf(other))
  return (
    <Card title={problems.length === 1 ? '1 problem' : `${problems.length} problems`} flush>
      <ul className="divide-y divide-line border-t border-line">
        {sorted.map((problem, index) => (
          <ProblemRow key={`${problem.code}-${index}`} problem={problem} />
        ))}
      </ul>
    </Card>
  )
}

function rankOf({ severity }: Problem): number {
  return severity === 'error' ? 0 : 1
}

function ProblemRow({ problem }: { problem: Problem }) {
  const { severity, title, detail, since, mistakes = [], link } = problem
  const isError = severity === 'error'
  const Icon = isError ? CircleAlert : TriangleAlert
  return (
    <li className="flex gap-3 px-5 py-3.5 text-sm">
      <Icon
        className={classNames('mt-0.5 size-4 shrink-0', isError ? 'text-bad' : 'text-warn')}
        aria-hidden
      />
      <div className="min-w-0 flex-1">
        <div className="flex flex-wrap items-baseline gap-x-3">
          <h3 className="font-medium">
            <span className="sr-only">{isError ? 'Error: ' : 'Warning: '}</span>
            {title}
          </h3>
          {since !== undefined && (
            <span className="text-xs text-ink-faint" title={formatDateTime(since)}>
              since {formatAgo(since)}
            </span>
          )}
        </div>
        <p className="mt-0.5 break-words text-ink-soft">{detail}</p>
        {mistakes.length > 0 && (
          <ul className="mt-2 rounded-lg bg-sunken px-3 py-2 text-xs">
            {mistakes.slice(0, maxMistakes).map(({ message, line, column, path }, index) => (
              <li key={index} className="flex min-h-6 flex-wrap items-center gap-x-2.5">
                {line !== undefined && (
                  <Link
                    href={`/tools/configuration?line=${line}`}
                    className="font-medium whitespace-nowrap text-accent hover:underline"
                  >
                    line {line}
                    {column !== undefined && `:${column}`}
                  </Link>
                )}
                {path && <code className="break-all">{path}</code>}
                <span className="break-words text-ink-soft">{message}</span>
              </li>
            ))}
            {mistakes.length > maxMistakes && <li>and {mistakes.length - maxMistakes} more</li>}
          </ul>
        )}
      </div>
      {link !== undefined && (
        <Link
          href={link}
          className="shrink-0 self-start font-medium whitespace-nowrap text-accent hover:underline"
        >
          Open
        </Link>
      )}
    </li>
  )
}
