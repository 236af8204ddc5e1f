import { useLocation } from 'wouter'
import { useKindSchema, useRecords } from '../../api/resources.ts'
import { ButtonLink } from '../../components/action/button.tsx'
import { ErrorState } from '../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../components/feedback/skeleton.tsx'
import { Card } from '../../components/layout/card.tsx'
import { Page } from '../../components/layout/page.tsx'
import { Prose } from '../../schema-form/frame/prose.tsx'
import { labelOf } from '../../schema-form/model/label.ts'
import type { JsonSchema } from '../../schema-form/model/schema.ts'
import { ResourceEditor } from '../resources/resource-editor.tsx'

/** More than any kind has. */
const allPolicies = { limit: 1000 }

/** Adds or edits one policy of a kind, by the name of its field. */
export function PolicyEditor({ kind, name, path }: { kind: string; name: string; path: string }) {
  const records = useRecords<unknown>(kind, allPolicies)
  const schema = useKindSchema(kind, name)
  const [, navigate] = useLocation()
  const title = labelOf(name)
  const description = (schema.data as JsonSchema | undefined)?.description ?? ''
  const error = records.error ?? schema.error
  if (error || records.data === undefined) {
    return (
      <Page title={title} actions={<ButtonLink href={path}>Back to the list</ButtonLink>}>
        {error ? <ErrorState error={error} onRetry={() => void records.refetch()} /> : <Loading />}
      </Page>
    )
  }
  const isMissing = !records.data.resources.some((record) => record.name === name)
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
      // The page of a policy has its name as address, not the id of its record.
      onSaved={({ kind }) => kind === 'removed' && navigate(path)}
    />
  )
}

function Loading() {
  return (
    <Card>
      <SkeletonLines count={8} />
    </Card>
  )
}
