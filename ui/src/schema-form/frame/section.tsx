import { ChevronRight, Plus, Trash2 } from 'lucide-react'
import { type ReactNode, useId, useState } from 'react'
import { Button } from '../../components/action/button.tsx'
import { IconButton } from '../../components/action/icon-button.tsx'
import { classNames } from '../../components/class-names.ts'
import { Badge } from '../../components/feedback/badge.tsx'
import { useFormContext } from '../form-context.ts'
import { blankValue } from '../model/blank.ts'
import type { JsonSchema } from '../model/schema.ts'
import type { FieldPath } from '../model/value.ts'
import { Mistakes } from './field-row.tsx'
import { Prose } from './prose.tsx'

type SectionProps = {
  readonly label: string
  readonly description: string | undefined
  readonly schema: JsonSchema
  readonly value: unknown
  readonly path: FieldPath
  readonly optional: boolean
  readonly required: boolean
  /** Number of items, of lists and maps. */
  readonly count: number | undefined
  /** Value that adding creates; of the schema if absent. */
  readonly blank?: unknown
  readonly children: ReactNode
}

/** A group of fields. An absent optional one is a line with a button that adds it. */
export function Section(props: SectionProps) {
  const { label, description, schema, value, path, optional, required, count, children } = props
  const { definitions, readOnly, set, mistakesBelow } = useFormContext()
  const id = useId()
  const [chosen, setOpen] = useState<boolean>()
  const wrong = mistakesBelow(path)
  const present = value !== undefined || (required && count === undefined)
  const open = present && (wrong > 0 ? chosen !== false : (chosen ?? true))
  const add = () => {
    set(path, props.blank === undefined ? (blankValue(schema, definitions) ?? {}) : props.blank)
    setOpen(true)
  }
  return (
    <section aria-labelledby={`${id}-label`} className="min-w-0 py-3">
      <div className="flex items-start gap-3">
        <div className="min-w-0 flex-1">
          {present ? (
            <button
              type="button"
              aria-expanded={open}
              onClick={() => setOpen(!open)}
              className="-ml-1 flex max-w-full items-center gap-1 rounded-md pr-2 text-left"
            >
              <ChevronRight
                className={classNames(
                  'size-4 shrink-0 text-ink-faint transition-transform',
                  open && 'rotate-90',
                )}
                aria-hidden
              />
              <span id={`${id}-label`} className="truncate text-sm font-medium">
                {label}
              </span>
              {required && <span className="ml-1 text-xs text-ink-faint">required</span>}
              {count !== undefined && <span className="ml-1 text-xs text-ink-faint tabular">{count}</span>}
              {wrong > 0 && <Badge tone="bad">{wrong === 1 ? '1 mistake' : `${wrong} mistakes`}</Badge>}
            </button>
          ) : (
            <span id={`${id}-label`} className="block truncate text-sm font-medium">
              {label}
              {required && <span className="ml-1.5 text-xs font-normal text-ink-faint">required</span>}
            </span>
          )}
          {description && (
            <p className="mt-0.5 max-w-prose text-xs text-ink-faint">
              <Prose text={description} />
            </p>
          )}
          <Mistakes path={path} />
        </div>
        {!readOnly && !present && (
          <Button size="small" icon={Plus} onClick={add} aria-label={`Add ${label}`}>
            Add
          </Button>
        )}
        {!readOnly && value !== undefined && optional && !required && (
          <IconButton
            icon={Trash2}
            label={`Remove ${label}`}
            tone="danger"
            onClick={() => set(path, undefined)}
          />
        )}
      </div>
      {open && <div className="mt-2 border-l-2 border-line pl-4">{children}</div>}
    </section>
  )
}
