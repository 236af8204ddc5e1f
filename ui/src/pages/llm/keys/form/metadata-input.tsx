import { Plus, Trash2 } from 'lucide-react'
import { Button } from '../../../../components/action/button.tsx'
import { IconButton } from '../../../../components/action/icon-button.tsx'
import { Input } from '../../../../components/form/input.tsx'
import type { DraftMistakes, MetadataDraft } from './key-draft.ts'
import { withItem, withoutItem } from './lists.ts'

/** Further metadata of a key: names and values. */
export function MetadataInput({
  items,
  mistakes,
  onChange,
}: {
  items: readonly MetadataDraft[]
  mistakes: DraftMistakes
  onChange(items: readonly MetadataDraft[]): void
}) {
  return (
    <div className="space-y-2">
      {items.map((item, index) => {
        const mistake = mistakes.get(`metadata.${index}`)
        return (
          <div key={index}>
            <div className="flex items-center gap-2">
              <Input
                aria-label={`Metadata name ${index + 1}`}
                aria-invalid={mistake ? true : undefined}
                placeholder="Name"
                className="max-w-48"
                value={item.name}
                onChange={(event) => onChange(withItem(items, index, { name: event.target.value }))}
              />
              <Input
                aria-label={`Metadata value ${index + 1}`}
                placeholder="Value"
                value={item.value}
                onChange={(event) => onChange(withItem(items, index, { value: event.target.value }))}
              />
              <IconButton
                icon={Trash2}
                tone="danger"
                label={`Remove metadata ${item.name || index + 1}`}
                onClick={() => onChange(withoutItem(items, index))}
              />
            </div>
            {mistake && (
              <p role="alert" className="mt-1 text-xs text-bad">
                {mistake}
              </p>
            )}
          </div>
        )
      })}
      <Button size="small" icon={Plus} onClick={() => onChange([...items, { name: '', value: '' }])}>
        Add metadata
      </Button>
    </div>
  )
}
