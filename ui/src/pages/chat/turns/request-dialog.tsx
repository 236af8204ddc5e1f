import { useState } from 'react'
import { CodeBlock } from '../../../components/data/code-block.tsx'
import { Facts } from '../../../components/data/facts.tsx'
import { Select } from '../../../components/form/select.tsx'
import { Dialog } from '../../../components/layout/dialog.tsx'
import { Tabs } from '../../../components/layout/tabs.tsx'
import { formatDateTime, formatDuration } from '../../../format/time.ts'
import { jsonLiteral } from '../../clients/snippets/literals.ts'
import { type RequestLanguage, requestCode, requestLanguages } from '../../clients/snippets/request-code.ts'
import { useChat } from '../chat-context.ts'
import type { Answer } from '../model/conversation.ts'

/** The request of an answer as code and JSON, and the head of its response. */
export function RequestDialog({ answer, onClose }: { answer: Answer; onClose(): void }) {
  const [tab, setTab] = useState('code')
  return (
    <Dialog
      open
      onOpenChange={(open) => open || onClose()}
      title={`Request to ${answer.model}`}
      width="wide"
      place="side"
    >
      <Tabs
        label="Request"
        value={tab}
        onChange={setTab}
        tabs={[
          { value: 'code', label: 'Code', content: <CodeTab answer={answer} /> },
          {
            value: 'body',
            label: 'Body',
            content: <CodeBlock label="request body" text={jsonLiteral(answer.run.request)} />,
          },
          { value: 'response', label: 'Response', content: <ResponseTab answer={answer} /> },
        ]}
      />
    </Dialog>
  )
}

function CodeTab({ answer }: { answer: Answer }) {
  const { listener, state } = useChat()
  const [language, setLanguage] = useState<RequestLanguage>('curl')
  const baseUrl = `${listener?.url ?? ''}${state.basePath}`
  return (
    <div className="space-y-3">
      <Select
        aria-label="Language"
        className="max-w-64"
        value={language}
        onChange={(value) => setLanguage(value as RequestLanguage)}
        options={requestLanguages.map(({ id, label }) => ({ value: id, label }))}
      />
      <CodeBlock label="code" text={requestCode(language, answer.run.request, { baseUrl })} />
      <p className="text-xs text-ink-faint">
        The key is read from the environment variable <code>TOLLGATE_API_KEY</code>.
      </p>
    </div>
  )
}

function ResponseTab({ answer: { run } }: { answer: Answer }) {
  return (
    <div className="space-y-4">
      <Facts
        facts={[
          ['Status', run.status],
          ['Started', formatDateTime(run.startedAt)],
          ['First token', run.firstTokenMs !== undefined && formatDuration(run.firstTokenMs)],
          ['Total', run.totalMs !== undefined && formatDuration(run.totalMs)],
          ['Finish reason', run.finishReason],
        ]}
      />
      <table className="w-full text-left text-xs">
        <caption className="pb-2 text-left font-medium">Headers</caption>
        <tbody>
          {(run.headers ?? []).map(([name, value]) => (
            <tr key={name} className="border-t border-line">
              <th scope="row" className="py-1.5 pr-4 align-top font-mono font-normal text-ink-soft">
                {name}
              </th>
              <td className="py-1.5 font-mono break-all">{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
