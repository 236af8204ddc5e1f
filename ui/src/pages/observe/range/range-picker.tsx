import { CalendarRange, RotateCw } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { Button } from '../../../components/action/button.tsx'
import { IconButton } from '../../../components/action/icon-button.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input } from '../../../components/form/input.tsx'
import { Select } from '../../../components/form/select.tsx'
import { Dialog } from '../../../components/layout/dialog.tsx'
import { formatDateTime } from '../../../format/time.ts'
import { presets, type Range, type RangeChoice, toLocalInput } from './time-range.ts'

type RangePickerProps = {
  readonly choice: RangeChoice
  readonly range: Range
  onChoose(choice: RangeChoice): void
  onRefresh(): void
  readonly busy?: boolean
}

const custom = 'custom'

/** Choice of a time range: a preset, or two times in the time zone of the browser. */
export function RangePicker({ choice, range, onChoose, onRefresh, busy = false }: RangePickerProps) {
  const [isOpen, setIsOpen] = useState(false)
  const choose = (id: string) => {
    const preset = presets.find((one) => one.id === id)
    if (preset) onChoose({ kind: 'preset', preset })
    else setIsOpen(true)
  }
  const customLabel =
    choice.kind === 'custom'
      ? `${formatDateTime(choice.from)} – ${formatDateTime(choice.to)}`
      : 'Other range…'
  return (
    <div className="flex items-center gap-1">
      <Select
        aria-label="Time range"
        className="max-w-64"
        value={choice.kind === 'preset' ? choice.preset.id : custom}
        onChange={choose}
        options={[
          ...presets.map(({ id, label }) => ({ value: id, label })),
          { value: custom, label: customLabel },
        ]}
      />
      <IconButton icon={CalendarRange} label="Choose other times" onClick={() => setIsOpen(true)} />
      <IconButton
        icon={RotateCw}
        label="Refresh"
        aria-busy={busy}
        className={busy ? 'animate-spin' : ''}
        onClick={onRefresh}
      />
      <Dialog open={isOpen} onOpenChange={setIsOpen} title="Time range" width="narrow">
        <CustomRange
          range={range}
          onApply={(next) => {
            onChoose({ kind: 'custom', ...next })
            setIsOpen(false)
          }}
        />
      </Dialog>
    </div>
  )
}

function CustomRange({ range, onApply }: { range: Range; onApply(range: Range): void }) {
  const [from, setFrom] = useState(toLocalInput(range.from))
  const [to, setTo] = useState(toLocalInput(range.to))
  const [start, end] = [Date.parse(from), Date.parse(to)]
  const isValid = start < end
  const apply = (event: FormEvent) => {
    event.preventDefault()
    if (isValid) onApply({ from: start, to: end })
  }
  return (
    <form onSubmit={apply} className="space-y-4">
      <Field label="From">
        {(control) => (
          <Input
            {...control}
            type="datetime-local"
            value={from}
            onChange={(event) => setFrom(event.target.value)}
          />
        )}
      </Field>
      <Field label="To" error={isValid ? undefined : 'The end must be after the start.'}>
        {(control) => (
          <Input
            {...control}
            type="datetime-local"
            value={to}
            onChange={(event) => setTo(event.target.value)}
          />
        )}
      </Field>
      <p className="text-xs text-ink-faint">
        Time zone {Intl.DateTimeFormat().resolvedOptions().timeZone}. Usage by hour and day is counted in UTC.
      </p>
      <div className="flex justify-end">
        <Button type="submit" tone="primary" disabled={!isValid}>
          Apply
        </Button>
      </div>
    </form>
  )
}
