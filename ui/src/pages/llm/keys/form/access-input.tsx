import { Segmented } from '../../../../components/form/segmented.tsx'
import { TagsInput } from '../../../../components/form/tags-input.tsx'

const choices = [
  { value: 'all', label: 'All' },
  { value: 'some', label: 'Selected' },
] as const

/** Names or patterns that a key may use: all, or those of a list. */
export function AccessInput({
  label,
  help,
  values,
  suggestions,
  onChange,
}: {
  label: string
  help: string
  values: readonly string[] | undefined
  suggestions: readonly string[]
  onChange(values: readonly string[] | undefined): void
}) {
  return (
    <div>
      <div className="mb-1.5 flex flex-wrap items-center justify-between gap-2">
        <span className="text-sm font-medium">{label}</span>
        <Segmented
          label={label}
          value={values === undefined ? 'all' : 'some'}
          options={choices}
          onChange={(choice) => onChange(choice === 'all' ? undefined : (values ?? []))}
        />
      </div>
      {values !== undefined && (
        <TagsInput
          label={label}
          values={values}
          suggestions={suggestions}
          placeholder="Name, prefix* or *suffix, then Enter"
          onChange={onChange}
        />
      )}
      <p className="mt-1 text-xs text-ink-faint">
        {values?.length === 0 ? 'An empty list permits none.' : help}
      </p>
    </div>
  )
}
