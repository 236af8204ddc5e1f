import { Play, Unplug } from 'lucide-react'
import { useGatewayState } from '../../../api/state.ts'
import { Button, ButtonLink } from '../../../components/action/button.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { ConnectForm } from './connect-form.tsx'
import { endpointsOf } from './endpoints.ts'
import { Questions } from './questions.tsx'
import { useMcpSession } from './use-session.ts'
import { Workspace } from './workspace.tsx'

/** MCP playground: a real client of the endpoint, with its policies. */
export default function PlaygroundPage() {
  const { session, state } = useMcpSession()
  return (
    <Page
      title="MCP playground"
      about="Call tools, get prompts and read resources as a client of the endpoint, with its login and its rules."
      actions={
        state.status === 'connected' && (
          <>
            <Badge tone="good" dot>
              Connected
            </Badge>
            <Button icon={Unplug} onClick={session.disconnect}>
              Disconnect
            </Button>
          </>
        )
      }
    >
      {state.status === 'connected' ? <Workspace /> : <Connect />}
      <Questions questions={state.questions} />
    </Page>
  )
}

function Connect() {
  const gateway = useGatewayState()
  if (gateway.error && !gateway.data)
    return <ErrorState error={gateway.error} onRetry={() => void gateway.refetch()} />
  if (!gateway.data)
    return (
      <Card>
        <SkeletonLines count={5} />
      </Card>
    )
  const endpoints = endpointsOf(gateway.data.listeners)
  if (endpoints.length === 0)
    return (
      <Card>
        <EmptyState
          icon={Play}
          title="No gateway serves MCP yet"
          action={
            <ButtonLink tone="primary" href="/mcp/servers/new">
              Add a server
            </ButtonLink>
          }
        >
          The playground is a client of the MCP endpoint. Add the first server to open it.
        </EmptyState>
      </Card>
    )
  return <ConnectForm endpoints={endpoints} />
}
