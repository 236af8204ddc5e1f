import { CodeBlock } from '../../../../components/data/code-block.tsx'
import { Badge } from '../../../../components/feedback/badge.tsx'
import { Notice } from '../../../../components/feedback/notice.tsx'
import { Card } from '../../../../components/layout/card.tsx'
import { formatDuration, formatTime } from '../../../../format/time.ts'
import { isObject } from '../../../../schema-form/model/value.ts'
import type { Members, Progress } from '../client/mcp-client.ts'
import type { Call } from '../session.ts'
import { ContentView } from './content-view.tsx'

/** Outcome of one call: progress, result or error. */
export function CallView({ call }: { call: Call }) {
  const { startedAt, endedAt, progress, result, error } = call
  const failed = error !== undefined || result?.['isError'] === true
  return (
    <Card
      title={endedAt === undefined ? 'Running' : 'Result'}
      about={
        <span className="tabular">
          {formatTime(startedAt)}
          {endedAt !== undefined && `, took ${formatDuration(endedAt - startedAt)}`}
        </span>
      }
      actions={
        endedAt !== undefined && (
          <Badge tone={failed ? 'bad' : 'good'} dot>
            {failed ? 'error' : 'success'}
          </Badge>
        )
      }
    >
      <div className="space-y-3" aria-live="polite">
        {endedAt === undefined && <ProgressBar progress={progress} />}
        {error !== undefined && <Notice tone="bad" title={error} />}
        {result && <Result result={result} />}
      </div>
    </Card>
  )
}

function ProgressBar({ progress }: { progress: Progress | undefined }) {
  if (progress === undefined) return <p className="text-sm text-ink-soft">Waiting for the server</p>
  const { progress: value, total, message } = progress
  return (
    <div className="space-y-1.5">
      <progress
        aria-label="Progress"
        className="h-1.5 w-full accent-accent"
        {...(total !== undefined && { value, max: total })}
      />
      <p className="text-xs text-ink-soft tabular">
        {total === undefined ? value : `${value} of ${total}`}
        {message && <bdi className="ml-2">{message}</bdi>}
      </p>
    </div>
  )
}

function Result({ result }: { result: Members }) {
  const { content, structuredContent, messages, contents } = result
  const parts = [content, contents].flatMap((list) => (Array.isArray(list) ? list.filter(isObject) : []))
  const turns = Array.isArray(messages) ? messages.filter(isObject) : []
  return (
    <>
      {parts.map((part, index) => (
        <ContentView key={index} content={part} />
      ))}
      {turns.map((turn, index) => (
        <div key={index}>
          <div className="mb-1 text-xs text-ink-faint">{String(turn['role'])}</div>
          {isObject(turn['content']) && <ContentView content={turn['content']} />}
        </div>
      ))}
      {structuredContent !== undefined && (
        <div>
          <div className="mb-1 text-xs text-ink-faint">Structured content</div>
          <CodeBlock label="structured content" text={JSON.stringify(structuredContent, undefined, 2)} />
        </div>
      )}
      {parts.length === 0 && turns.length === 0 && structuredContent === undefined && (
        <p className="text-sm text-ink-soft">The result is empty.</p>
      )}
      <details>
        <summary className="cursor-pointer text-xs text-ink-soft">As sent by the server</summary>
        <div className="mt-2">
          <CodeBlock label="result" text={JSON.stringify(result, undefined, 2).slice(0, 200_000)} />
        </div>
      </details>
    </>
  )
}
