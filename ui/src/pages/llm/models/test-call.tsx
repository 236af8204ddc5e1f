import { SendHorizontal } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { useEnteredKey } from '../../../api/entered-key.ts'
import { useGatewayState } from '../../../api/state.ts'
import { Button, ButtonLink } from '../../../components/action/button.tsx'
import { Facts } from '../../../components/data/facts.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input } from '../../../components/form/input.tsx'
import { Dialog } from '../../../components/layout/dialog.tsx'
import { formatNumber } from '../../../format/number.ts'
import { formatDuration } from '../../../format/time.ts'
import { send, type Update } from '../../chat/model/send.ts'
import { isPattern } from './model.ts'

/** Sends one request to a model through the gateway, as a client would. */
export function TestCall({ model, onClose }: { model: string; onClose(): void }) {
  const [name, setName] = useState(isPattern(model) ? model.replace('*', '') : model)
  const [prompt, setPrompt] = useState('Reply with one short sentence.')
  const [key, enterKey] = useEnteredKey()
  const [update, setUpdate] = useState<Update>()
  const { data: state } = useGatewayState()
  const running = useRef<AbortController>(undefined)
  const listener = state?.listeners.find(({ serves }) => serves.includes('llm'))
  useEffect(() => () => running.current?.abort(), [])
  const busy = update?.run.state === 'waiting' || update?.run.state === 'streaming'
  const call = async () => {
    if (listener === undefined) return
    const abort = new AbortController()
    running.current = abort
    const target = { gateway: listener.gateway, basePath: '/v1', key }
    const messages = [{ role: 'user' as const, content: prompt }]
    const options = { signal: abort.signal, onUpdate: setUpdate, now: () => performance.now() }
    await send(target, { model: name, messages, max_tokens: 200, stream: false }, options)
  }
  return (
    <Dialog
      open
      title={`Test ${model}`}
      about="The request takes the path of every client: authentication, limits, guards and the provider."
      onOpenChange={(open) => open || onClose()}
      footer={
        <>
          <ButtonLink href="/chat">Open in chat</ButtonLink>
          <Button
            tone="primary"
            icon={SendHorizontal}
            busy={busy}
            disabled={listener === undefined || name === ''}
            onClick={() => void call()}
          >
            Send
          </Button>
        </>
      }
    >
      <div className="space-y-4">
        {state && listener === undefined && (
          <Notice tone="warn" title="No port of the gateway serves models">
            Add a port to llm in the configuration.
          </Notice>
        )}
        <div className="grid grid-cols-1 gap-4 sm:grid-cols-2">
          <Field label="Model">
            {(control) => (
              <Input {...control} value={name} onChange={(event) => setName(event.target.value)} />
            )}
          </Field>
          <Field label="Virtual key" help="In memory until this page is reloaded. Empty: no key.">
            {(control) => (
              <Input
                {...control}
                type="password"
                autoComplete="off"
                value={key}
                onChange={(event) => enterKey(event.target.value)}
              />
            )}
          </Field>
        </div>
        <Field label="Prompt">
          {(control) => (
            <Input {...control} value={prompt} onChange={(event) => setPrompt(event.target.value)} />
          )}
        </Field>
        <div aria-live="polite">{update && !busy && <Outcome update={update} />}</div>
      </div>
    </Dialog>
  )
}

function Outcome({ update: { progress, run } }: { update: Update }) {
  const { state, status, error, totalMs, usage } = run
  const requestId = run.headers?.find(([name]) => name === 'x-request-id')?.[1]
  return (
    <div className="space-y-3 rounded-lg border border-line bg-sunken p-4">
      {state === 'failed' ? (
        <Notice tone="bad" title={error?.message ?? 'The request failed.'}>
          {status === 401 && 'Enter a virtual key that may use this model.'}
        </Notice>
      ) : (
        <p className="max-h-48 overflow-y-auto text-sm break-words whitespace-pre-wrap" dir="auto">
          {progress.text === '' ? 'The response has no text.' : progress.text}
        </p>
      )}
      <Facts
        facts={[
          [
            'Status',
            status && (
              <Badge key="status" tone={status < 400 ? 'good' : 'bad'}>
                {status}
              </Badge>
            ),
          ],
          ['Time', totalMs === undefined ? undefined : formatDuration(totalMs)],
          [
            'Tokens',
            usage && `${formatNumber(usage.inputTokens)} in, ${formatNumber(usage.outputTokens)} out`,
          ],
        ]}
      />
      {requestId && (
        <ButtonLink size="small" href={`/requests/${encodeURIComponent(requestId)}`}>
          Explain this request
        </ButtonLink>
      )}
    </div>
  )
}
