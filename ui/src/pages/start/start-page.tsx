import { useLocation, useSearch } from 'wouter'
import { useGatewayState } from '../../api/state.ts'
import { ButtonLink } from '../../components/action/button.tsx'
import { ErrorState } from '../../components/feedback/error-state.tsx'
import { Segmented } from '../../components/form/segmented.tsx'
import { Page } from '../../components/layout/page.tsx'
import { McpPath } from './mcp/mcp-path.tsx'
import { ModelPath } from './models/model-path.tsx'

/** Guided paths from an empty configuration to the first call of a model, or of a tool of an MCP server. */
export default function StartPage() {
  const search = useSearch()
  const [, navigate] = useLocation()
  const { data, error, refetch } = useGatewayState()
  const path = new URLSearchParams(search).get('path') === 'mcp' ? 'mcp' : 'models'
  return (
    <Page
      title="Get started"
      about="From nothing to the first call. Each step is checked against this gateway, and you can stop at any time."
      actions={<ButtonLink href="/clients">Client setup</ButtonLink>}
    >
      <Segmented
        label="Path"
        value={path}
        onChange={(next) => navigate(next === 'mcp' ? '/start?path=mcp' : '/start', { replace: true })}
        options={[
          { value: 'models', label: 'Models' },
          { value: 'mcp', label: 'MCP server' },
        ]}
      />
      {!data && error ? <ErrorState error={error} onRetry={() => void refetch()} /> : null}
      {path === 'mcp' ? <McpPath key="mcp" state={data} /> : <ModelPath key="models" state={data} />}
    </Page>
  )
}
