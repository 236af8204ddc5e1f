import { useState } from 'react'
import type { LogEntry, Payload as StoredPayload } from '../../../api/ledger/log-entry.ts'
import { usePayload } from '../../../api/ledger/requests.ts'
import { classNames } from '../../../components/class-names.ts'
import { CodeBlock } from '../../../components/data/code-block.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Segmented } from '../../../components/form/segmented.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Markdown } from '../../../components/markdown/markdown.tsx'
import { type ChatMessage, formatJson, type MessagePart, readMessages } from './messages.ts'

type View = 'chat' | 'raw'

/** Prompt and response of a request, where these are stored. */
export function Payload({ request }: { request: LogEntry }) {
  const [view, setView] = useState<View>('chat')
  const { data, error, isPending, refetch } = usePayload(request.id, request.hasPayload)
  return (
    <Card
      title="Content"
      about="As stored after the guards, with their matches masked"
      actions={
        request.hasPayload && (
          <Segmented<View>
            label="Form of the content"
            value={view}
            onChange={setView}
            options={[
              { value: 'chat', label: 'Chat' },
              { value: 'raw', label: 'Raw' },
            ]}
          />
        )
      }
    >
      {!request.hasPayload ? (
        <p className="text-sm text-ink-soft">
          No content is stored for this request. With <code>config.logging.database.payloads: true</code> the
          ledger stores prompts and responses of new requests.
        </p>
      ) : error ? (
        <ErrorState error={error} onRetry={() => refetch()} />
      ) : isPending ? (
        <SkeletonLines />
      ) : data === null ? (
        <p className="text-sm text-ink-soft">The content was deleted at the end of its retention.</p>
      ) : view === 'raw' ? (
        <RawPayload payload={data} />
      ) : (
        <ChatPayload payload={data} />
      )}
    </Card>
  )
}

function RawPayload({ payload }: { payload: StoredPayload }) {
  return (
    <div className="grid grid-cols-1 gap-4 xl:grid-cols-2">
      {payload.requestPrompt !== null && (
        <CodeBlock text={formatJson(payload.requestPrompt)} label="prompt" />
      )}
      {payload.responseCompletion !== null && (
        <CodeBlock text={formatJson(payload.responseCompletion)} label="response" />
      )}
    </div>
  )
}

function ChatPayload({ payload }: { payload: StoredPayload }) {
  const { requestPrompt, responseCompletion } = payload
  return (
    <div className="space-y-3">
      {requestPrompt !== null && <Messages text={requestPrompt} speaker="request" />}
      {responseCompletion !== null && <Messages text={responseCompletion} speaker="response" />}
      {responseCompletion === null && <p className="text-sm text-ink-soft">No response was stored.</p>}
    </div>
  )
}

function Messages({ text, speaker }: { text: string; speaker: string }) {
  const messages = readMessages(text) ?? [
    { role: speaker, parts: [{ kind: 'text', text }] } satisfies ChatMessage,
  ]
  return messages.map((message, index) => <Message key={index} message={message} />)
}

function Message({ message }: { message: ChatMessage }) {
  const isReply = message.role === 'assistant' || message.role === 'response'
  return (
    <article className={classNames('flex', isReply ? 'justify-start' : 'justify-end')}>
      <div
        className={classNames(
          'max-w-[52rem] min-w-0 rounded-xl border px-4 py-2.5 text-sm',
          isReply ? 'border-line bg-surface' : 'border-transparent bg-accent-soft',
        )}
      >
        <div className="mb-1 text-xs font-medium text-ink-soft">{message.role}</div>
        {message.parts.map((part, index) => (
          <Part key={index} part={part} isReply={isReply} />
        ))}
        {message.parts.length === 0 && <span className="text-ink-soft">(empty)</span>}
      </div>
    </article>
  )
}

function Part({ part, isReply }: { part: MessagePart; isReply: boolean }) {
  if (part.kind === 'text' && isReply) return <Markdown text={part.text} />
  if (part.kind === 'text') return <p className="break-words whitespace-pre-wrap">{part.text}</p>
  return (
    <div className="mt-1">
      <Badge tone="info">{part.kind === 'tool call' ? `calls ${part.name}` : part.type}</Badge>
      <pre className="mt-1 max-h-80 overflow-auto text-xs break-words whitespace-pre-wrap">{part.text}</pre>
    </div>
  )
}
