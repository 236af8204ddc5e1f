import { X } from 'lucide-react'
import { type KeyboardEvent, useId, useState } from 'react'
import { inputClass } from './input.tsx'

type TagsInputProps = {
  readonly label: string
  readonly values: readonly string[]
  onChange(values: readonly string[]): void
  readonly suggestions?: readonly string[]
  readonly placeholder?: string
  readonly disabled?: boolean
}

/** A list of short texts. Enter or a comma adds one, Backspace in the empty input removes the last. */
export function TagsInput({
  label,
  values,
  onChange,
  suggestions = [],
  placeholder,
  disabled = false,
}: TagsInputProps) {
  const [text, setText] = useState('')
  const id = useId()
  const add = () => {
    const added = text
      .split(',')
      .map((part) => part.trim())
      .filter((part, index, all) => part !== '' && all.indexOf(part) === index && !values.includes(part))
    setText('')
    if (added.length > 0) onChange([...values, ...added])
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Enter' || (event.key === ',' && text !== '')) {
      event.preventDefault()
      add()
    } else if (event.key === 'Backspace' && text === '' && values.length > 0) onChange(values.slice(0, -1))
  }
  return (
    <div className="space-y-2">
      {values.length > 0 && (
        <ul aria-label={label} className="flex flex-wrap gap-1.5">
          {values.map((value) => (
            <li
              key={value}
              className="inline-flex max-w-full items-center gap-1 rounded-md border border-line bg-sunken py-0.5 pr-0.5 pl-2 font-mono text-xs"
            >
              <span className="truncate" dir="auto">
                {value}
              </span>
              <button
                type="button"
                aria-label={`Remove ${value}`}
                disabled={disabled}
                onClick={() => onChange(values.filter((other) => other !== value))}
                className="grid size-6 shrink-0 place-items-center rounded text-ink-faint hover:bg-hover hover:text-ink"
              >
                <X className="size-3.5" aria-hidden />
              </button>
            </li>
          ))}
        </ul>
      )}
      <input
        aria-label={`Add to ${label}`}
        className={inputClass}
        value={text}
        list={suggestions.length > 0 ? id : undefined}
        placeholder={placeholder}
        disabled={disabled}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKey}
        onBlur={add}
      />
      {suggestions.length > 0 && (
        <datalist id={id}>
          {suggestions
            .filter((suggestion) => !values.includes(suggestion))
            .map((suggestion) => (
              <option key={suggestion} value={suggestion} />
            ))}
        </datalist>
      )}
    </div>
  )
}
