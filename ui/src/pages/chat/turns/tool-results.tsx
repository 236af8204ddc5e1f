import { useId, useState } from 'react'
import { Button } from '../../../components/action/button.tsx'
import { TextArea } from '../../../components/form/input.tsx'
import { useChat } from '../chat-context.ts'
import type { Panel } from '../chat-store.ts'
import { openCalls, type ToolCall } from '../model/conversation.ts'

/** Forms for the results of tools that the model has called. */
export function ToolResults({ panel }: { panel: Panel }) {
  return openCalls(panel.turns).map((call) => <ResultForm key={call.id} panelId={panel.id} call={call} />)
}

function ResultForm({ panelId, call }: { panelId: string; call: ToolCall }) {
  const { store, listener } = useChat()
  const [text, setText] = useState('')
  const id = useId()
  return (
    <form
      className="space-y-2 rounded-lg border border-line bg-sunken p-3"
      onSubmit={(event) => {
        event.preventDefault()
        if (listener) store.answerCall(panelId, call.id, text, listener.gateway)
      }}
    >
      <label htmlFor={id} className="block text-xs font-medium">
        Result of <code>{call.name}</code>
      </label>
      <TextArea
        id={id}
        rows={3}
        value={text}
        placeholder='{"temperature": 21}'
        spellCheck={false}
        className="font-mono text-xs"
        onChange={(event) => setText(event.target.value)}
      />
      <div className="flex justify-end">
        <Button type="submit" size="small">
          Send result
        </Button>
      </div>
    </form>
  )
}
