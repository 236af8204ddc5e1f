import { Input, TextArea } from '../../components/form/input.tsx'
import { CelInput } from '../../editors/cel/cel-input.tsx'
import { useFormContext } from '../form-context.ts'
import { useControl } from '../frame/field-row.tsx'
import type { NodeOf } from '../model/node.ts'
import type { FieldPath } from '../model/value.ts'

export type InputProps<Node> = {
  readonly node: Node
  readonly value: unknown
  readonly path: FieldPath
  readonly label: string
  readonly optional: boolean
  readonly required?: boolean
  readonly bare?: boolean
}

/** A text. Long and multi-line texts have an area, CEL expressions an editor. */
export function TextInput({
  node,
  value,
  path,
  label,
  optional,
  required,
  bare,
}: InputProps<NodeOf<'text'>>) {
  const { readOnly, set } = useFormContext()
  const control = useControl(path, bare ? undefined : node.description, required)
  const text = value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)
  const change = (next: string) => set(path, next === '' && optional ? undefined : next)
  const attributes = {
    ...control,
    ...(bare && { 'aria-label': label }),
    readOnly,
    value: text,
    spellCheck: false,
    placeholder: node.placeholder,
    maxLength: Number.isFinite(node.maxLength) ? node.maxLength : undefined,
  }
  if (node.format === 'cel') {
    return (
      <CelInput
        label={label}
        id={control.id}
        describedBy={control['aria-describedby']}
        invalid={control['aria-invalid']}
        value={text}
        roots={node.roots}
        placeholder={node.placeholder}
        readOnly={readOnly}
        onChange={change}
      />
    )
  }
  if (text.includes('\n') || text.length > 120) {
    const rows = Math.min(16, Math.max(3, text.split('\n').length + 1))
    return <TextArea {...attributes} rows={rows} onChange={(event) => change(event.target.value)} />
  }
  return (
    <Input
      {...attributes}
      type="text"
      inputMode={node.format === 'url' ? 'url' : undefined}
      className={node.format === undefined ? undefined : 'font-mono'}
      onChange={(event) => change(event.target.value)}
      onPaste={(event) => {
        // An input of one line would drop the line breaks of a pasted certificate or key.
        const pasted = event.clipboardData.getData('text')
        if (!/\n./.test(pasted)) return
        event.preventDefault()
        const { selectionStart, selectionEnd } = event.currentTarget
        const start = text.slice(0, selectionStart ?? text.length)
        change(start + pasted + text.slice(selectionEnd ?? text.length))
      }}
    />
  )
}
