import { ChevronRight } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { classNames } from '../../components/class-names.ts'
import { useFormContext } from '../form-context.ts'
import { labelOf } from '../model/label.ts'
import type { NodeOf, ObjectField } from '../model/node.ts'
import { type FieldPath, memberOf } from '../model/value.ts'
import { NodeInput } from './node-input.tsx'
import { OneOfInput } from './one-of-input.tsx'
import { UnknownMembers } from './unknown-members.tsx'

type ObjectFieldsProps = {
  readonly node: NodeOf<'object'>
  readonly value: unknown
  readonly path: FieldPath
  readonly hidden?: readonly string[]
}

/** The fields of an object: those of which one is needed first, advanced ones folded. */
export function ObjectFields({ node, value, path, hidden = [] }: ObjectFieldsProps) {
  const { readOnly } = useFormContext()
  const oneOf = node.oneOf.filter((name) => !hidden.includes(name))
  const own = node.fields.filter(
    ({ name }) =>
      !node.oneOf.includes(name) &&
      !hidden.includes(name) &&
      // Without inputs, only what is set is of interest.
      !(readOnly && memberOf(value, name) === undefined),
  )
  const variants = node.fields.filter(({ name }) => oneOf.includes(name))
  const isPlain = (field: ObjectField) => !field.advanced || memberOf(value, field.name) !== undefined
  // A field that is set stays visible, and does not move when it is cleared.
  const [plain] = useState(() => new Set(own.filter(isPlain).map(({ name }) => name)))
  const required = own.filter((field) => field.required)
  const shown = own.filter((field) => !field.required && plain.has(field.name))
  const folded = own.filter((field) => !field.required && !plain.has(field.name))
  return (
    <div className="min-w-0 divide-y divide-line">
      <Fields fields={required} value={value} path={path} />
      {variants.length > 0 && <OneOfInput variants={variants} value={value} path={path} />}
      <Fields fields={shown} value={value} path={path} />
      {folded.length > 0 && (
        <Advanced path={path} fields={folded}>
          <Fields fields={folded} value={value} path={path} />
        </Advanced>
      )}
      <UnknownMembers node={node} value={value} path={path} />
    </div>
  )
}

function Fields({
  fields,
  value,
  path,
}: {
  fields: readonly ObjectField[]
  value: unknown
  path: FieldPath
}) {
  return fields.map(({ name, schema, required }) => (
    <NodeInput
      key={name}
      schema={schema}
      value={memberOf(value, name)}
      path={[...path, name]}
      label={labelOf(name)}
      required={required}
      optional
    />
  ))
}

/** Fields that few need, behind a button. Mistakes open them. */
function Advanced({
  path,
  fields,
  children,
}: {
  path: FieldPath
  fields: readonly ObjectField[]
  children: ReactNode
}) {
  const { mistakesBelow } = useFormContext()
  const wrong = fields.some(({ name }) => mistakesBelow([...path, name]) > 0)
  const [chosen, setOpen] = useState(false)
  const open = chosen || wrong
  return (
    <div className="divide-y divide-line">
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="flex w-full items-center gap-1.5 rounded-md py-3 text-left text-sm text-ink-soft hover:text-ink"
      >
        <ChevronRight
          className={classNames('size-4 transition-transform', open && 'rotate-90')}
          aria-hidden
        />
        Advanced
        <span className="truncate text-xs text-ink-faint">
          {!open && fields.map(({ name }) => labelOf(name)).join(', ')}
        </span>
      </button>
      {open && children}
    </div>
  )
}
