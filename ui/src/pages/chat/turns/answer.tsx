import { ChevronRight, Code, FileText, RotateCw, Wrench } from 'lucide-react'
import { memo, useState } from 'react'
import { CopyButton } from '../../../components/action/copy-button.tsx'
import { IconButton } from '../../../components/action/icon-button.tsx'
import { Markdown } from '../../../components/markdown/markdown.tsx'
import type { Answer, ToolCall } from '../model/conversation.ts'
import { AnswerFacts } from './answer-facts.tsx'
import { Refusal } from './refusal.tsx'
import { RequestDialog } from './request-dialog.tsx'

/** Answer of a model: text, tool calls, outcome and figures. */
export const AnswerView = memo(
  function AnswerView({ answer, onRetry }: { answer: Answer; onRetry?: () => void }) {
    const [raw, setRaw] = useState(false)
    const [detailsOpen, setDetailsOpen] = useState(false)
    const { run, text } = answer
    const ended = run.state !== 'waiting' && run.state !== 'streaming'
    return (
      <article aria-label={`Answer of ${answer.model}`} className="space-y-3">
        <AnswerText answer={answer} raw={raw} />
        {ended && (
          <footer>
            <div className="-ml-2 flex">
              {text !== '' && (
                <>
                  <CopyButton text={text} label="Copy answer" />
                  <IconButton
                    icon={FileText}
                    label={raw ? 'Show formatted text' : 'Show plain text'}
                    aria-pressed={raw}
                    onClick={() => setRaw(!raw)}
                  />
                </>
              )}
              <IconButton
                icon={Code}
                label="Request, headers and code"
                onClick={() => setDetailsOpen(true)}
              />
              {onRetry && <IconButton icon={RotateCw} label="Ask again" onClick={onRetry} />}
            </div>
          </footer>
        )}
        {detailsOpen && <RequestDialog answer={answer} onClose={() => setDetailsOpen(false)} />}
      </article>
    )
  },
  // The callback is new at each render of the panel; its presence alone is displayed.
  (before, after) => before.answer === after.answer && !before.onRetry === !after.onRetry,
)

/** Text, tool calls, outcome and figures of an answer, without actions. */
export function AnswerText({ answer, raw = false }: { answer: Answer; raw?: boolean }) {
  const { run, text } = answer
  const ended = run.state !== 'waiting' && run.state !== 'streaming'
  return (
    <>
      {answer.reasoning !== '' && <Reasoning text={answer.reasoning} />}
      {text !== '' && (raw ? <RawText text={text} /> : <Markdown text={text} />)}
      {answer.toolCalls.map((call, index) => (
        <CallView key={index} call={call} />
      ))}
      {!ended && <Progress waiting={run.state === 'waiting' || text === ''} />}
      {run.state === 'stopped' && <p className="text-xs text-ink-faint">Stopped.</p>}
      {run.state === 'failed' && <Refusal answer={answer} />}
      {ended && <AnswerFacts answer={answer} />}
    </>
  )
}

function RawText({ text }: { text: string }) {
  return <pre className="font-sans leading-relaxed break-words whitespace-pre-wrap">{text}</pre>
}

function Reasoning({ text }: { text: string }) {
  return (
    <details className="group rounded-lg border border-line bg-sunken text-xs text-ink-soft">
      <summary className="flex cursor-pointer list-none items-center gap-1.5 px-3 py-2 font-medium">
        <ChevronRight className="size-3.5 transition-transform group-open:rotate-90" aria-hidden />
        Reasoning
      </summary>
      <div className="px-3 pb-3 whitespace-pre-wrap">{text}</div>
    </details>
  )
}

function CallView({ call }: { call: ToolCall }) {
  return (
    <div className="overflow-hidden rounded-lg border border-line">
      <div className="flex items-center gap-2 bg-sunken px-3 py-2 text-xs font-medium">
        <Wrench className="size-3.5 text-accent" aria-hidden />
        Calls <code>{call.name || '…'}</code>
      </div>
      <pre className="px-3 py-2 text-xs break-words whitespace-pre-wrap">{pretty(call.arguments)}</pre>
    </div>
  )
}

function Progress({ waiting }: { waiting: boolean }) {
  return (
    <span className="flex items-center gap-1.5 text-xs text-ink-faint" role="status">
      <span className="size-2 animate-pulse rounded-full bg-accent" aria-hidden />
      {waiting ? 'Waiting for the first token' : <span className="sr-only">The answer is streaming</span>}
    </span>
  )
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
