import { lazy, type ReactNode, Suspense, useEffect, useState } from 'react'
import type { ConfigRecord } from '../../api/resources.ts'
import { Button } from '../../components/action/button.tsx'
import { messageOf } from '../../components/feedback/error-state.tsx'
import { Notice } from '../../components/feedback/notice.tsx'
import { SkeletonLines } from '../../components/feedback/skeleton.tsx'
import { Segmented } from '../../components/form/segmented.tsx'
import { Card } from '../../components/layout/card.tsx'
import { editableRecord, editableValue } from '../../save/editable-value.ts'
import { type SaveOutcome, useSave } from '../../save/save.tsx'
import { SaveBar } from '../../save/save-bar.tsx'
import { UnsavedGuard } from '../../save/unsaved.tsx'
import { useSchemaForm } from '../../schema-form/form-state.ts'
import { blankValue } from '../../schema-form/model/blank.ts'
import type { JsonSchema } from '../../schema-form/model/schema.ts'
import { sameJson } from '../../schema-form/model/value.ts'
import { SchemaForm } from '../../schema-form/schema-form.tsx'
import type { EditorParts } from './resource-editor.tsx'

const YamlPane = lazy(() => import('./yaml-pane.tsx'))

type RecordFormProps = {
  readonly kind: string
  readonly noun: string
  readonly schema: JsonSchema
  readonly record: ConfigRecord<unknown> | undefined
  readonly initial?: unknown
  readonly name?: string
  readonly hidden?: readonly string[]
  readonly readOnlyReason: string | undefined
  before?(parts: EditorParts): ReactNode
  after?(parts: EditorParts): ReactNode
  onDone(outcome: SaveOutcome & { kind: 'saved' | 'removed' }): void
  children(parts: { content: ReactNode; dialog: ReactNode; busy: boolean; remove(): void }): ReactNode
}

type View = 'form' | 'yaml'

/** The form of one record: form or YAML, mistakes, and the bar that saves. */
export function RecordForm(props: RecordFormProps) {
  const { kind, noun, schema, record, name, readOnlyReason: reason, onDone, children } = props
  const readOnly = reason !== undefined
  const [blank] = useState(() => blankValue(schema, schema.definitions ?? {}) ?? {})
  const form = useSchemaForm(editableValue(record) ?? props.initial ?? blank, editableValue(record) ?? blank)
  const { save, remove, busy, dialog } = useSave(kind)
  const [view, setView] = useState<View>('form')
  const [message, setMessage] = useState<string>()
  const [yamlMistake, setYamlMistake] = useState<string>()
  const latest = useLatestRecord(record, form)

  const accept = (outcome: SaveOutcome) => {
    if (outcome.kind === 'refused') {
      setMessage(outcome.message)
      form.setMistakes(outcome.mistakes)
      focusFirstMistake()
    }
    if (outcome.kind === 'reloaded' && outcome.record) form.reset(editableValue(outcome.record))
    if (outcome.kind === 'saved') form.reset(editableValue(outcome.record))
    if (outcome.kind === 'saved' || outcome.kind === 'removed') onDone(outcome)
  }
  const submit = async () => {
    setMessage(undefined)
    if (yamlMistake !== undefined) return setMessage(yamlMistake)
    if (!form.check(schema)) {
      focusFirstMistake()
      return setMessage('Some fields need attention. They are marked below.')
    }
    try {
      accept(await save({ record: latest.base, value: form.value, name }))
    } catch (error) {
      setMessage(messageOf(error))
    }
  }
  const parts: EditorParts = { form, schema, record, readOnly }
  const content = (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
      className="space-y-6"
    >
      {reason && <Notice title={reason} />}
      {latest.isStale && (
        <Notice
          tone="warn"
          title="This record was changed elsewhere"
          action={
            <Button size="small" onClick={latest.adopt}>
              {form.dirty ? 'Discard my input and load it' : 'Load the change'}
            </Button>
          }
        >
          Saving offers to merge both changes.
        </Notice>
      )}
      {message && <Refused message={message} />}
      {view === 'form' && props.before?.(parts)}
      <Card
        title={record ? 'Settings' : `Settings of the new ${noun}`}
        actions={
          <Segmented<View>
            label="View"
            value={view}
            options={[
              { value: 'form', label: 'Form' },
              { value: 'yaml', label: 'YAML' },
            ]}
            onChange={(next) => yamlMistake === undefined && setView(next)}
          />
        }
      >
        {view === 'form' ? (
          <SchemaForm
            schema={schema}
            form={form}
            readOnly={readOnly}
            label={`Settings of the ${noun}`}
            {...(props.hidden && { hidden: props.hidden })}
          />
        ) : (
          <Suspense fallback={<SkeletonLines count={8} />}>
            <YamlPane form={form} schema={schema} readOnly={readOnly} onMistake={setYamlMistake} />
          </Suspense>
        )}
      </Card>
      {view === 'form' && props.after?.(parts)}
      {!readOnly && (
        <SaveBar
          dirty={form.dirty || record === undefined}
          busy={busy}
          isNew={record === undefined}
          onDiscard={record && (() => form.reset(editableValue(record)))}
        />
      )}
      <UnsavedGuard dirty={form.dirty && !busy} />
    </form>
  )
  const removeRecord = () => record && void remove(record).then(accept)
  return children({ content, dialog, busy, remove: removeRecord })
}

/** The loaded record, and whether a newer revision exists that the form does not display. */
function useLatestRecord(record: ConfigRecord<unknown> | undefined, form: ReturnType<typeof useSchemaForm>) {
  const [base, setBase] = useState(record)
  const isStale =
    record !== undefined &&
    record.revision !== base?.revision &&
    !sameJson(editableValue(record), form.stored)
  const adopt = () => {
    setBase(record)
    form.reset(editableValue(record))
  }
  // After a save, or a change elsewhere while nothing is edited, the loaded record is the base of the next change.
  const mayAdopt = record !== undefined && record !== base && (!isStale || !form.dirty)
  useEffect(() => {
    if (!mayAdopt || record === undefined) return
    setBase(record)
    if (!form.dirty) form.reset(editableValue(record))
  }, [mayAdopt, record, form])
  return { base: base && editableRecord(base), isStale: isStale && form.dirty, adopt }
}

/** Why the change was not stored: one line, or a list of mistakes. */
function Refused({ message }: { message: string }) {
  const lines = message.split('\n').filter((line) => line.trim() !== '')
  if (lines.length === 1) return <Notice tone="bad" title={lines[0]} />
  return (
    <Notice tone="bad" title={`The gateway refused the change: ${lines.length} mistakes`}>
      <ul className="list-disc pl-4">
        {lines.map((line, index) => (
          <li key={index}>{line}</li>
        ))}
      </ul>
    </Notice>
  )
}

function focusFirstMistake(): void {
  requestAnimationFrame(() =>
    document.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus({ preventScroll: false }),
  )
}
