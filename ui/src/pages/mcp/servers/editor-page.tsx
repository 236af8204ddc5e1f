import { useQueryClient } from '@tanstack/react-query'
import { Eye } from 'lucide-react'
import { useLocation, useParams, useSearchParams } from 'wouter'
import { useRecord } from '../../../api/resources.ts'
import { ButtonLink } from '../../../components/action/button.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Page } from '../../../components/layout/page.tsx'
import type { SaveOutcome } from '../../../save/save.tsx'
import { isObject } from '../../../schema-form/model/value.ts'
import { duplicateOf } from '../../resources/duplicate.ts'
import { type EditorParts, ResourceEditor } from '../../resources/resource-editor.tsx'
import { blankServer, transportOf } from './transport.ts'
import { TransportChoice } from './transport-choice.tsx'

const path = '/mcp/servers'

/** Adds or edits an MCP server. */
export default function ServerEditorPage() {
  const { id } = useParams()
  const [parameters] = useSearchParams()
  const [, navigate] = useLocation()
  const client = useQueryClient()
  const from = parameters.get('from') ?? undefined
  const source = useRecord<unknown>('mcp.target', id === undefined ? from : undefined)
  if (id === undefined && from !== undefined && source.isPending)
    return (
      <Page title="New server">
        <SkeletonLines count={8} />
      </Page>
    )
  const onSaved = (outcome: SaveOutcome & { kind: 'saved' | 'removed' }) => {
    void client.invalidateQueries({ queryKey: ['mcp-targets'] })
    void client.invalidateQueries({ queryKey: ['mcp-target'] })
    navigate(outcome.kind === 'removed' ? path : `${path}/${encodeURIComponent(outcome.record.id)}`)
  }
  return (
    <ResourceEditor
      key={id ?? 'new'}
      kind="mcp.target"
      id={id}
      noun="server"
      path={path}
      about={
        id === undefined
          ? 'Clients see its tools, prompts and resources at the MCP endpoint as soon as it is saved.'
          : 'Connection and policies of the server. Sessions that are open continue until they end.'
      }
      initial={source.data ? duplicateOf(source.data) : blankServer('mcp', undefined)}
      before={(parts) => parts.record === undefined && <NewServer {...parts} />}
      actions={(record) => (
        <ButtonLink icon={Eye} href={`${path}/${encodeURIComponent(record.id)}`}>
          Tools
        </ButtonLink>
      )}
      onSaved={onSaved}
    />
  )
}

function NewServer({ form }: EditorParts) {
  const name = isObject(form.value) ? form.value['name'] : undefined
  const transport = transportOf(form.value)
  return (
    <div className="space-y-4">
      <TransportChoice value={transport} onChange={(chosen) => form.set([], blankServer(chosen, name))} />
      {transport === 'stdio' && (
        <Notice title="Programs need the consent of the file">
          The gateway runs programs from the console only with{' '}
          <code>config.storage.allowStdioTargets: true</code> in its configuration file. In the file itself
          they are always allowed.
        </Notice>
      )}
    </div>
  )
}
