import { useQueryClient } from '@tanstack/react-query'
import { Play } from 'lucide-react'
import { type FormEvent, useId, useRef, useState } from 'react'
import { useEnteredKey } from '../../../api/entered-key.ts'
import type { GatewayState, Listener } from '../../../api/state.ts'
import { Button, ButtonLink } from '../../../components/action/button.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input } from '../../../components/form/input.tsx'
import type { Answer } from '../../chat/model/conversation.ts'
import { send } from '../../chat/model/send.ts'
import { useModels } from '../../chat/model/use-models.ts'
import { AnswerText } from '../../chat/turns/answer.tsx'

/** Sends a chat completion with the key of the user. */
export function CallStep({ state }: { state: GatewayState | undefined }) {
  const listener = state?.listeners.find(({ serves }) => serves.includes('llm'))
  if (!listener) return <p className="text-sm text-ink-soft">Add a model first: it opens the port.</p>
  return <CallForm listener={listener} />
}

const basePath = '/v1'

function CallForm({ listener }: { listener: Listener }) {
  const queries = useQueryClient()
  const [key, enterKey] = useEnteredKey()
  const [model, setModel] = useState<string>()
  const [message, setMessage] = useState('Say hello in one sentence.')
  const [answer, setAnswer] = useState<Answer>()
  const abort = useRef<AbortController>(undefined)
  const listId = useId()
  const data = useModels(listener.gateway, basePath)
  const names = data.kind === 'listed' ? data.names.filter((name) => !name.includes('*')) : []
  const chosen = model ?? names[0] ?? ''
  const running = answer?.run.state === 'waiting' || answer?.run.state === 'streaming'
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    abort.current?.abort()
    abort.current = new AbortController()
    const request = {
      model: chosen,
      messages: [{ role: 'user' as const, content: message }],
      stream: true,
      stream_options: { include_usage: true },
    }
    await send({ gateway: listener.gateway, basePath, key }, request, {
      signal: abort.current.signal,
      now: () => performance.now(),
      onUpdate: ({ progress: { text, reasoning, toolCalls }, run }) =>
        setAnswer({ kind: 'answer', id: 'first', model: chosen, text, reasoning, toolCalls, run }),
    })
    void queries.invalidateQueries({ queryKey: ['succeeded'] })
  }
  return (
    <form onSubmit={submit} className="space-y-4">
      <div className="grid grid-cols-1 gap-4 sm:grid-cols-2">
        <Field
          label="Virtual key"
          help="Stays in the memory of this page."
          error={
            data.kind === 'refused' && data.status === 401 && 'The gateway requires a valid virtual key.'
          }
        >
          {(control) => (
            <Input
              {...control}
              type="password"
              value={key}
              placeholder="tg-…"
              spellCheck={false}
              className="font-mono"
              onChange={(event) => enterKey(event.target.value)}
            />
          )}
        </Field>
        <Field label="Model" required>
          {(control) => (
            <>
              <Input
                {...control}
                list={listId}
                value={chosen}
                spellCheck={false}
                className="font-mono"
                onChange={(event) => setModel(event.target.value)}
              />
              <datalist id={listId}>
                {names.slice(0, 100).map((name) => (
                  <option key={name} value={name} />
                ))}
              </datalist>
            </>
          )}
        </Field>
      </div>
      <Field label="Message" required>
        {(control) => (
          <Input {...control} value={message} onChange={(event) => setMessage(event.target.value)} />
        )}
      </Field>
      <div className="flex flex-wrap gap-2">
        <Button type="submit" tone="primary" icon={Play} busy={running} disabled={chosen === ''}>
          Send
        </Button>
        {running && <Button onClick={() => abort.current?.abort()}>Stop</Button>}
      </div>
      {answer && (
        <div role="status" className="space-y-4 rounded-lg border border-line bg-sunken p-4 text-sm">
          <AnswerText answer={answer} />
        </div>
      )}
      {answer?.run.state === 'done' && (
        <div className="flex flex-wrap gap-2">
          <ButtonLink href="/clients" tone="primary">
            Set up a client
          </ButtonLink>
          <ButtonLink href="/chat">Compare models in the chat</ButtonLink>
          <ButtonLink href="/llm/guards">Add a guard</ButtonLink>
          <ButtonLink href="/budgets">Set a budget</ButtonLink>
        </div>
      )}
    </form>
  )
}
