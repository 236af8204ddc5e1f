import { ArrowDownLeft, ArrowUpRight, Eraser } from 'lucide-react'
import { useState } from 'react'
import { Button } from '../../../../components/action/button.tsx'
import { CodeBlock } from '../../../../components/data/code-block.tsx'
import { Badge, type Tone } from '../../../../components/feedback/badge.tsx'
import { Segmented } from '../../../../components/form/segmented.tsx'
import { Select } from '../../../../components/form/select.tsx'
import { Card } from '../../../../components/layout/card.tsx'
import { formatTime } from '../../../../format/time.ts'
import { isObject } from '../../../../schema-form/model/value.ts'
import type { LogLine, RawMessage } from '../session.ts'
import { useMcpSession } from '../use-session.ts'

type View = 'messages' | 'log'

const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']

/** Log of the servers, and each message of the session. */
export function Activity() {
  const { session, state } = useMcpSession()
  const [view, setView] = useState<View>('messages')
  const { logs, messages, server } = state
  return (
    <Card
      flush
      title="Activity"
      actions={
        <>
          {view === 'log' && isObject(server?.capabilities['logging']) && (
            <Select
              aria-label="Level of the log"
              defaultValue=""
              options={[{ value: '', label: 'Level' }, ...levels.map((value) => ({ value, label: value }))]}
              onChange={(level) => level !== '' && void session.setLevel(level)}
            />
          )}
          <Segmented<View>
            label="Activity"
            value={view}
            options={[
              { value: 'messages', label: `Messages ${messages.length}` },
              { value: 'log', label: `Log ${logs.length}` },
            ]}
            onChange={setView}
          />
          <Button size="small" icon={Eraser} onClick={session.clear}>
            Clear
          </Button>
        </>
      }
    >
      {view === 'messages' ? <Messages messages={messages} /> : <Log lines={logs} />}
    </Card>
  )
}

function Messages({ messages }: { messages: readonly RawMessage[] }) {
  if (messages.length === 0) return <p className="px-5 py-4 text-sm text-ink-soft">No messages.</p>
  return (
    <ul className="max-h-96 divide-y divide-line overflow-y-auto border-t border-line">
      {messages.toReversed().map((message) => (
        <Message key={message.id} message={message} />
      ))}
    </ul>
  )
}

function Message({ message: { direction, summary, text, time } }: { message: RawMessage }) {
  const [open, setOpen] = useState(false)
  const Icon = direction === 'sent' ? ArrowUpRight : ArrowDownLeft
  return (
    <li>
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="flex w-full items-center gap-3 px-5 py-2 text-left text-xs -outline-offset-2 hover:bg-hover"
      >
        <Icon className="size-3.5 shrink-0 text-ink-faint" aria-hidden />
        <span className="w-16 shrink-0 text-ink-faint">{direction}</span>
        <bdi className="min-w-0 flex-1 truncate font-mono">{summary}</bdi>
        <span className="tabular text-ink-faint">{formatTime(time)}</span>
      </button>
      {open && (
        <div className="px-5 pb-3">
          <CodeBlock label="message" text={text} />
        </div>
      )}
    </li>
  )
}

const tones: Readonly<Record<string, Tone>> = {
  warning: 'warn',
  error: 'bad',
  critical: 'bad',
  alert: 'bad',
  emergency: 'bad',
}

function Log({ lines }: { lines: readonly LogLine[] }) {
  if (lines.length === 0)
    return <p className="px-5 py-4 text-sm text-ink-soft">The servers have sent no log messages.</p>
  return (
    <ul aria-live="polite" className="max-h-96 divide-y divide-line overflow-y-auto border-t border-line">
      {lines.toReversed().map(({ id, time, level, logger, text }) => (
        <li key={id} className="flex items-baseline gap-3 px-5 py-2 text-xs">
          <Badge tone={tones[level] ?? 'neutral'}>{level}</Badge>
          <bdi className="min-w-0 flex-1 break-words whitespace-pre-wrap">
            {logger && <span className="mr-2 text-ink-faint">{logger}</span>}
            {text}
          </bdi>
          <span className="tabular text-ink-faint">{formatTime(time)}</span>
        </li>
      ))}
    </ul>
  )
}
