import { Plus, Trash2 } from 'lucide-react'
import { Button } from '../../../../components/action/button.tsx'
import { IconButton } from '../../../../components/action/icon-button.tsx'
import { Field } from '../../../../components/form/field.tsx'
import { Input } from '../../../../components/form/input.tsx'
import { Select } from '../../../../components/form/select.tsx'
import type { DraftMistakes, LimitDraft } from './key-draft.ts'
import { withItem, withoutItem } from './lists.ts'

const subjects = [
  { value: 'requests', label: 'requests' },
  { value: 'tokens', label: 'tokens' },
]
const units = [
  { value: 'Seconds', label: 'per second' },
  { value: 'Minutes', label: 'per minute' },
  { value: 'Hours', label: 'per hour' },
]

/** Limits of a key by requests or tokens. */
export function LimitsInput({
  items,
  mistakes,
  onChange,
}: {
  items: readonly LimitDraft[]
  mistakes: DraftMistakes
  onChange(items: readonly LimitDraft[]): void
}) {
  return (
    <div className="space-y-3">
      {items.map((item, index) => (
        <div
          key={index}
          className="flex flex-wrap items-start gap-3 rounded-lg border border-line bg-sunken p-3"
        >
          <div className="min-w-28 flex-1">
            <Field label="Amount" error={mistakes.get(`limits.${index}.amount`)}>
              {(control) => (
                <Input
                  {...control}
                  inputMode="numeric"
                  value={item.amount}
                  onChange={(event) => onChange(withItem(items, index, { amount: event.target.value }))}
                />
              )}
            </Field>
          </div>
          <div className="min-w-28 flex-1">
            <Field label="Of">
              {(control) => (
                <Select
                  {...control}
                  options={subjects}
                  value={item.of}
                  onChange={(of) =>
                    onChange(withItem(items, index, { of: of === 'tokens' ? of : 'requests' }))
                  }
                />
              )}
            </Field>
          </div>
          <div className="min-w-32 flex-1">
            <Field label="Period">
              {(control) => (
                <Select
                  {...control}
                  options={units}
                  value={item.unit}
                  onChange={(unit) => onChange(withItem(items, index, { unit: unit as LimitDraft['unit'] }))}
                />
              )}
            </Field>
          </div>
          <div className="min-w-28 flex-1">
            <Field label="Burst" error={mistakes.get(`limits.${index}.burst`)}>
              {(control) => (
                <Input
                  {...control}
                  inputMode="numeric"
                  placeholder="0"
                  value={item.burst}
                  onChange={(event) => onChange(withItem(items, index, { burst: event.target.value }))}
                />
              )}
            </Field>
          </div>
          <div className="pt-6">
            <IconButton
              icon={Trash2}
              tone="danger"
              label={`Remove limit ${index + 1}`}
              onClick={() => onChange(withoutItem(items, index))}
            />
          </div>
        </div>
      ))}
      <Button
        size="small"
        icon={Plus}
        onClick={() => onChange([...items, { of: 'requests', amount: '60', unit: 'Minutes', burst: '' }])}
      >
        Add limit
      </Button>
    </div>
  )
}
