import { PlugZap } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { Button, ButtonLink } from '../../../components/action/button.tsx'
import { CopyButton } from '../../../components/action/copy-button.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input } from '../../../components/form/input.tsx'
import { Select } from '../../../components/form/select.tsx'
import { Card } from '../../../components/layout/card.tsx'
import type { McpPlace } from './endpoints.ts'
import type { SessionState } from './session.ts'
import { useMcpSession } from './use-session.ts'

/** Address and credential of the session. */
export function ConnectForm({ endpoints }: { endpoints: readonly McpPlace[] }) {
  const { session, state } = useMcpSession()
  const last = state.endpoint
  const [url, setUrl] = useState(
    endpoints.find(({ gateway }) => gateway === last?.gateway)?.url ?? endpoints[0]?.url,
  )
  const [path, setPath] = useState(last?.path ?? '/mcp')
  const [credential, setCredential] = useState(last?.credential ?? '')
  const place = endpoints.find((one) => one.url === url) ?? endpoints[0]
  const connect = (event: FormEvent) => {
    event.preventDefault()
    if (place !== undefined) void session.connect({ gateway: place.gateway, path, credential })
  }
  return (
    <div className="max-w-3xl space-y-4">
      {state.failure && <Failure failure={state.failure} />}
      <Card
        title="Connect to the endpoint"
        about="The console sends the requests through the gateway, as a client on its machine would."
      >
        <form onSubmit={connect} className="space-y-4">
          <Field label="Endpoint">
            {(control) => (
              <span className="flex items-center gap-1">
                <Select
                  {...control}
                  value={place?.url ?? ''}
                  options={endpoints.map((one) => ({ value: one.url, label: `${one.gateway}: ${one.url}` }))}
                  onChange={setUrl}
                />
                <CopyButton text={place?.url ?? ''} label="Copy the address" />
              </span>
            )}
          </Field>
          <div className="grid grid-cols-1 gap-4 sm:grid-cols-2">
            <Field label="Path" help="Routes may serve other MCP endpoints at other paths.">
              {(control) => (
                <Input
                  {...control}
                  value={path}
                  onChange={(event) => setPath(withSlash(event.target.value))}
                />
              )}
            </Field>
            <Field label="Token or key" help="Sent as bearer token. It stays in the memory of this page.">
              {(control) => (
                <Input
                  {...control}
                  type="password"
                  value={credential}
                  onChange={(event) => setCredential(event.target.value)}
                />
              )}
            </Field>
          </div>
          <Button type="submit" tone="primary" icon={PlugZap} busy={state.status === 'connecting'}>
            Connect
          </Button>
        </form>
      </Card>
    </div>
  )
}

function withSlash(text: string): string {
  return text.startsWith('/') ? text : `/${text}`
}

function Failure({
  failure: { message, status, challenge },
}: {
  failure: NonNullable<SessionState['failure']>
}) {
  const needsLogin = status === 401
  return (
    <Notice
      tone="bad"
      title={needsLogin ? 'The endpoint requires a token or key' : 'The session could not be opened'}
      action={
        status !== undefined &&
        status >= 500 && (
          <ButtonLink size="small" href="/mcp/servers">
            Check the servers
          </ButtonLink>
        )
      }
    >
      {message}
      {needsLogin && challenge && <code className="mt-1 block text-xs break-words">{challenge}</code>}
    </Notice>
  )
}
