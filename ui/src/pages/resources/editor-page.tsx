import { useParams, useSearchParams } from 'wouter'
import { useRecord } from '../../api/resources.ts'
import { SkeletonLines } from '../../components/feedback/skeleton.tsx'
import { Page } from '../../components/layout/page.tsx'
import { duplicateOf } from './duplicate.ts'
import { lookOf } from './kinds.ts'
import { ResourceEditor } from './resource-editor.tsx'

/** Creates or edits a record of any kind. */
export default function ResourceEditorPage() {
  const { kind = '', id = '' } = useParams()
  const [parameters] = useSearchParams()
  const from = parameters.get('from') ?? undefined
  const source = useRecord<unknown>(kind, from)
  const { noun } = lookOf(kind)
  const isNew = id === 'new'
  if (from !== undefined && source.isPending)
    return (
      <Page title={`New ${noun}`}>
        <SkeletonLines count={8} />
      </Page>
    )
  return (
    <ResourceEditor
      key={`${kind} ${id}`}
      kind={kind}
      id={isNew ? undefined : id}
      noun={noun}
      path={`/resources/${encodeURIComponent(kind)}`}
      about={`A record of the kind ${kind}.`}
      {...(source.data && { initial: duplicateOf(source.data) })}
    />
  )
}
