import { Copy, Trash2 } from 'lucide-react'
import { type ReactNode, useMemo } from 'react'
import { useLocation } from 'wouter'
import { type ConfigRecord, useKindSchema, useRecord } from '../../api/resources.ts'
import { useWhoami } from '../../api/whoami.ts'
import { Button, ButtonLink } from '../../components/action/button.tsx'
import { ErrorState } from '../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../components/feedback/skeleton.tsx'
import { Card } from '../../components/layout/card.tsx'
import { Page } from '../../components/layout/page.tsx'
import { readOnlyReason } from '../../save/ownership.ts'
import { titleOf } from '../../save/requests.ts'
import type { SaveOutcome } from '../../save/save.tsx'
import type { SchemaFormState } from '../../schema-form/form-state.ts'
import type { JsonSchema } from '../../schema-form/model/schema.ts'
import { isPolicyKind } from './kinds.ts'
import { RecordForm } from './record-form.tsx'

/** What purpose-made parts of an editor page get. */
export type EditorParts = {
  readonly form: SchemaFormState
  readonly schema: JsonSchema
  readonly record: ConfigRecord<unknown> | undefined
  readonly readOnly: boolean
}

export type ResourceEditorProps = {
  readonly kind: string
  /** Id or name of the record; undefined creates one. */
  readonly id: string | undefined
  /** Name of one record, in lower case: `model`. */
  readonly noun: string
  readonly about?: ReactNode
  /** Heading; the name of the record if absent. */
  readonly title?: string
  /** Address of the list. A created record opens at `${path}/${id}`. */
  readonly path: string
  /** Value of a new record. */
  readonly initial?: unknown
  /** Name of a policy, or `default` of a kind with a single record, if it does not exist yet. */
  readonly name?: string
  /** Fields that `before` displays in a purpose-made way. */
  readonly hidden?: readonly string[]
  /** Purpose-made parts above and below the form. */
  before?(parts: EditorParts): ReactNode
  after?(parts: EditorParts): ReactNode
  /** Buttons in the heading of an existing record. */
  actions?(record: ConfigRecord<unknown>): ReactNode
  /** Called after a change was stored, in place of opening the record or the list. */
  onSaved?(outcome: SaveOutcome & { kind: 'saved' | 'removed' }): void
  /** Whether a second record of the same content makes sense. */
  readonly duplicable?: boolean
}

/** Creates or edits one record of a kind, as a form or as YAML. */
export function ResourceEditor(props: ResourceEditorProps) {
  const { kind, id, noun, about, path } = props
  const record = useRecord<unknown>(kind, id)
  const isLoaded = id === undefined || record.data !== undefined
  // Each policy has a schema of its own, by its name.
  const policy = isPolicyKind(kind) ? (record.data?.name ?? props.name) : undefined
  const schema = useKindSchema(kind, policy, isLoaded)
  const named = useMemo(
    () => withRequiredName(schema.data as JsonSchema | undefined, kind),
    [schema.data, kind],
  )
  const error = schema.error ?? record.error
  const title =
    props.title ?? (id === undefined ? `New ${noun}` : record.data ? titleOf(record.data) : `${noun} ${id}`)
  if (error) {
    return (
      <Page title={title} about={about} actions={<ButtonLink href={path}>Back to the list</ButtonLink>}>
        <ErrorState error={error} onRetry={() => void (schema.error ? schema.refetch() : record.refetch())} />
      </Page>
    )
  }
  if (named === undefined || !isLoaded) {
    return (
      <Page title={title} about={about}>
        <Card>
          <SkeletonLines count={8} />
        </Card>
      </Page>
    )
  }
  return (
    <Loaded
      key={`${kind} ${record.data?.id ?? 'new'}`}
      {...props}
      title={title}
      schema={named}
      record={record.data}
    />
  )
}

/** The schema with the name that identifies a record, which a configuration file may omit. */
function withRequiredName(schema: JsonSchema | undefined, kind: string): JsonSchema | undefined {
  const { properties = {}, required = [] } = schema ?? {}
  if (isPolicyKind(kind) || properties['name'] === undefined || required.includes('name')) return schema
  return { ...schema, required: ['name', ...required] }
}

type LoadedProps = ResourceEditorProps & {
  readonly title: string
  readonly schema: JsonSchema
  readonly record: ConfigRecord<unknown> | undefined
}

function Loaded(props: LoadedProps) {
  const { kind, title, about, path, record, duplicable = !isPolicyKind(kind) } = props
  const [, navigate] = useLocation()
  const { data: whoami } = useWhoami()
  const reason = readOnlyReason(record, whoami)
  const open = (outcome: SaveOutcome & { kind: 'saved' | 'removed' }) => {
    if (props.onSaved) props.onSaved(outcome)
    else if (outcome.kind === 'removed') navigate(path)
    else if (record === undefined || outcome.record.id !== record.id)
      navigate(`${path}/${encodeURIComponent(outcome.record.id)}`, { replace: record === undefined })
  }
  return (
    <RecordForm {...props} readOnlyReason={reason} onDone={open}>
      {({ content, dialog, remove, busy }) => (
        <Page
          title={title}
          about={about}
          actions={
            record && (
              <>
                {props.actions?.(record)}
                {duplicable && (
                  <ButtonLink icon={Copy} href={`${path}/new?from=${encodeURIComponent(record.id)}`}>
                    Duplicate
                  </ButtonLink>
                )}
                {reason === undefined && (
                  <Button tone="danger" icon={Trash2} disabled={busy} onClick={remove}>
                    Delete
                  </Button>
                )}
              </>
            )
          }
        >
          {content}
          {dialog}
        </Page>
      )}
    </RecordForm>
  )
}
