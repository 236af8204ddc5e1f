import { ApiError } from '../../api/client.ts'
import { useKindSchema, useRecord } from '../../api/resources.ts'
import { SkeletonLines } from '../../components/feedback/skeleton.tsx'
import { Card } from '../../components/layout/card.tsx'
import { Page } from '../../components/layout/page.tsx'
import { Prose } from '../../schema-form/frame/prose.tsx'
import { labelOf } from '../../schema-form/model/label.ts'
import type { JsonSchema } from '../../schema-form/model/schema.ts'
import { ResourceEditor } from '../resources/resource-editor.tsx'

/** Adds or edits one policy of a kind, by the name of its field. */
export function PolicyEditor({ kind, name, path }: { kind: string; name: string; path: string }) {
  const record = useRecord<unknown>(kind, name)
  const schema = useKindSchema(kind, name)
  const isMissing = record.error instanceof ApiError && record.error.status === 404
  const title = labelOf(name)
  const description = (schema.data as JsonSchema | undefined)?.description ?? ''
  if (record.isPending) {
    return (
      <Page title={title}>
        <Card>
          <SkeletonLines count={8} />
        </Card>
      </Page>
    )
  }
  return (
    <ResourceEditor
      key={isMissing ? 'new' : 'edit'}
      kind={kind}
      id={isMissing ? undefined : name}
      name={name}
      noun={`policy ${title}`}
      title={title}
      about={<Prose text={description} />}
      path={path}
    />
  )
}
