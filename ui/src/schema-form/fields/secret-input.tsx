import { Eye, EyeOff, KeyRound, Undo2 } from 'lucide-react'
import { useMemo, useState } from 'react'
import { Button } from '../../components/action/button.tsx'
import { IconButton } from '../../components/action/icon-button.tsx'
import { Input } from '../../components/form/input.tsx'
import { useFormContext } from '../form-context.ts'
import { useControl } from '../frame/field-row.tsx'
import type { FormNode, NodeOf } from '../model/node.ts'
import type { JsonSchema } from '../model/schema.ts'
import { isMasked, isObject, valueAt } from '../model/value.ts'
import { AlternativesInput } from './alternatives-input.tsx'
import { JsonInput } from './json-input.tsx'
import type { InputProps } from './text-input.tsx'

/** A secret: a stored one is not displayed, and is retained until it is replaced. */
export function SecretInput(props: InputProps<FormNode> & { schema: JsonSchema }) {
  const { value, path, label, optional } = props
  const { readOnly, set, stored } = useFormContext()
  const isStored = isMasked(valueAt(stored, path))
  if (isMasked(value)) {
    return (
      <div className="flex items-center gap-2">
        <span className="flex h-8.5 min-w-0 flex-1 items-center gap-2 rounded-md border border-line bg-sunken px-2.5 text-sm text-ink-soft">
          <KeyRound className="size-4 shrink-0" aria-hidden />
          <span className="truncate">Stored, not displayed</span>
        </span>
        {!readOnly && (
          <Button
            size="medium"
            aria-label={`Replace ${label}`}
            onClick={() => set(path, optional ? undefined : '')}
          >
            Replace
          </Button>
        )}
      </div>
    )
  }
  return (
    <div className="space-y-2">
      <SecretValue {...props} />
      {isStored && !readOnly && (
        <Button size="small" tone="quiet" icon={Undo2} onClick={() => set(path, '***')}>
          Keep the stored secret
        </Button>
      )}
    </div>
  )
}

function SecretValue(props: InputProps<FormNode>) {
  const { node, value, path, label, optional, required = false, bare } = props
  const { readOnly, set } = useFormContext()
  const [visible, setVisible] = useState(false)
  const control = useControl(path, bare ? undefined : node.description, required)
  const alternatives = useMemo(() => withSecretTexts(node), [node])
  if (alternatives) return <AlternativesInput {...props} node={alternatives} required={required} bare />
  if (isObject(value)) return <JsonInput {...props} node={node} />
  const text = value === undefined ? '' : String(value)
  const isReference = text.startsWith('$')
  return (
    <div className="flex items-center gap-1">
      <Input
        {...control}
        {...(bare && { 'aria-label': label })}
        type={visible || isReference ? 'text' : 'password'}
        autoComplete="new-password"
        spellCheck={false}
        className="font-mono"
        readOnly={readOnly}
        value={text}
        placeholder={node.placeholder ?? 'Secret, or $NAME of the environment'}
        onChange={(event) =>
          set(path, event.target.value === '' && optional ? undefined : event.target.value)
        }
      />
      {!isReference && (
        <IconButton
          icon={visible ? EyeOff : Eye}
          label={visible ? `Hide ${label}` : `Show ${label}`}
          onClick={() => setVisible(!visible)}
        />
      )}
    </div>
  )
}

/** A secret with several forms: its texts are secrets, a reference to a file is not. */
function withSecretTexts(node: FormNode): NodeOf<'alternatives'> | undefined {
  if (node.kind !== 'alternatives') return undefined
  const options = node.options.map((option) =>
    option.type === 'string' ? { ...option, writeOnly: true } : option,
  )
  return { ...node, options }
}
