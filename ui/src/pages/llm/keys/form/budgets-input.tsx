import { Plus, Trash2 } from 'lucide-react'
import { Button } from '../../../../components/action/button.tsx'
import { IconButton } from '../../../../components/action/icon-button.tsx'
import { Field } from '../../../../components/form/field.tsx'
import { Input } from '../../../../components/form/input.tsx'
import { Select } from '../../../../components/form/select.tsx'
import { type BudgetDraft, type DraftMistakes, isCalendar } from './key-draft.ts'
import { withItem, withoutItem } from './lists.ts'

const units = [
  { value: 'USD', label: 'US dollars' },
  { value: 'Tokens', label: 'tokens' },
]
const windows = [
  { value: 'day', label: 'each day' },
  { value: 'week', label: 'each week, from Monday' },
  { value: 'month', label: 'each month' },
  { value: 'rolling', label: 'a duration' },
]
const actions = [
  { value: 'Block', label: 'refuse requests' },
  { value: 'Audit', label: 'count and report only' },
]

type BudgetsInputProps = {
  readonly items: readonly BudgetDraft[]
  readonly mistakes: DraftMistakes
  onChange(items: readonly BudgetDraft[]): void
}

/** Budgets of a key in dollars or tokens. */
export function BudgetsInput({ items, mistakes, onChange }: BudgetsInputProps) {
  return (
    <div className="space-y-3">
      {items.map((item, index) => (
        <BudgetInput
          key={index}
          item={item}
          index={index}
          mistakes={mistakes}
          onChange={(change) => onChange(withItem(items, index, change))}
          onRemove={() => onChange(withoutItem(items, index))}
        />
      ))}
      {items.length < 16 && (
        <Button size="small" icon={Plus} onClick={() => onChange([...items, newBudget(items)])}>
          Add budget
        </Button>
      )}
    </div>
  )
}

function newBudget(items: readonly BudgetDraft[]): BudgetDraft {
  const taken = new Set(items.map(({ name }) => name))
  const name = ['monthly', 'weekly', 'daily'].find((one) => !taken.has(one)) ?? `budget ${items.length + 1}`
  const window = name === 'weekly' ? 'week' : name === 'daily' ? 'day' : 'month'
  return { name, unit: 'USD', amount: '', window, timeZone: '', action: 'Block', warnAt: '80' }
}

function BudgetInput({
  item,
  index,
  mistakes,
  onChange,
  onRemove,
}: {
  item: BudgetDraft
  index: number
  mistakes: DraftMistakes
  onChange(change: Partial<BudgetDraft>): void
  onRemove(): void
}) {
  const mistake = (field: string) => mistakes.get(`budgets.${index}.${field}`)
  const calendar = isCalendar(item.window)
  return (
    <div className="rounded-lg border border-line bg-sunken p-3">
      <div className="mb-2 flex items-center justify-between gap-2">
        <span className="truncate text-sm font-medium">{item.name || `Budget ${index + 1}`}</span>
        <IconButton
          icon={Trash2}
          tone="danger"
          label={`Remove budget ${item.name || index + 1}`}
          onClick={onRemove}
        />
      </div>
      <div className="grid grid-cols-1 gap-3 sm:grid-cols-2 lg:grid-cols-4">
        <TextField
          label="Name"
          value={item.name}
          error={mistake('name')}
          onChange={(name) => onChange({ name })}
        />
        <TextField
          label="Amount"
          value={item.amount}
          error={mistake('amount')}
          numeric
          onChange={(amount) => onChange({ amount })}
        />
        <ChoiceField
          label="Of"
          value={item.unit}
          options={units}
          onChange={(unit) => onChange({ unit: unit as BudgetDraft['unit'] })}
        />
        <ChoiceField
          label="Period"
          value={calendar ? item.window : 'rolling'}
          options={windows}
          onChange={(window) => onChange({ window: window === 'rolling' ? '24h' : window })}
        />
        {calendar ? (
          <TextField
            label="Time zone"
            value={item.timeZone}
            placeholder="UTC"
            onChange={(timeZone) => onChange({ timeZone })}
          />
        ) : (
          <TextField
            label="Duration"
            value={item.window}
            error={mistake('window')}
            onChange={(window) => onChange({ window })}
          />
        )}
        <ChoiceField
          label="When used up"
          value={item.action}
          options={actions}
          onChange={(action) => onChange({ action: action as BudgetDraft['action'] })}
        />
        <TextField
          label="Warn from, in percent"
          value={item.warnAt}
          error={mistake('warnAt')}
          placeholder="no warning"
          numeric
          onChange={(warnAt) => onChange({ warnAt })}
        />
      </div>
    </div>
  )
}

function TextField({
  label,
  value,
  error,
  placeholder,
  numeric = false,
  onChange,
}: {
  label: string
  value: string
  error?: string | undefined
  placeholder?: string
  numeric?: boolean
  onChange(value: string): void
}) {
  return (
    <Field label={label} error={error}>
      {(control) => (
        <Input
          {...control}
          value={value}
          placeholder={placeholder}
          inputMode={numeric ? 'decimal' : 'text'}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  )
}

function ChoiceField({
  label,
  value,
  options,
  onChange,
}: {
  label: string
  value: string
  options: readonly { readonly value: string; readonly label: string }[]
  onChange(value: string): void
}) {
  return (
    <Field label={label}>
      {(control) => <Select {...control} options={options} value={value} onChange={onChange} />}
    </Field>
  )
}
