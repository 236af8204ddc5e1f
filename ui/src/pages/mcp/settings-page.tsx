import { useRecords } from '../../api/resources.ts'
import { ErrorState } from '../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../components/feedback/skeleton.tsx'
import { Card } from '../../components/layout/card.tsx'
import { Page } from '../../components/layout/page.tsx'
import { ResourceEditor } from '../resources/resource-editor.tsx'

/** Settings of the MCP endpoint: one record. */
export default function SettingsPage() {
  const records = useRecords('mcp.settings')
  if (records.data === undefined)
    return (
      <Page title="MCP endpoint">
        {records.error ? (
          <ErrorState error={records.error} onRetry={() => void records.refetch()} />
        ) : (
          <Card>
            <SkeletonLines count={6} />
          </Card>
        )}
      </Page>
    )
  const [record] = records.data.resources
  return (
    <ResourceEditor
      key={record?.id ?? 'new'}
      kind="mcp.settings"
      id={record?.id}
      name="default"
      noun="MCP endpoint"
      path="/mcp/policies"
      about="Address of the endpoint, sessions, names of tools, and the effect of a server that fails."
      duplicable={false}
      title="MCP endpoint"
    />
  )
}
