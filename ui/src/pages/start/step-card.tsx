import { Check, ChevronDown } from 'lucide-react'
import { type ReactNode, useId } from 'react'
import { classNames } from '../../components/class-names.ts'

/** `done`: verified at the gateway. `next`: the first that is not. */
export type StepState = 'done' | 'next' | 'later'

type StepCardProps = {
  readonly number: number
  readonly title: string
  /** Result of a finished step, or the purpose of an open one. */
  readonly about: ReactNode
  readonly state: StepState
  readonly open: boolean
  onToggle(): void
  readonly children: ReactNode
}

/** A step of a guided path. Finished steps fold, and can be opened again. */
export function StepCard({ number, title, about, state, open, onToggle, children }: StepCardProps) {
  const id = useId()
  return (
    <li className="relative pl-12">
      <span
        className="absolute top-9 bottom-[-1.5rem] left-[1.06rem] w-px bg-line [li:last-child>&]:hidden"
        aria-hidden
      />
      <span
        aria-hidden
        className={classNames(
          'absolute top-2 left-0 grid size-9 place-items-center rounded-full border text-sm font-semibold tabular',
          state === 'done' && 'border-transparent bg-good-soft text-good',
          state === 'next' && 'border-transparent bg-accent text-on-accent',
          state === 'later' && 'border-line-strong bg-surface text-ink-faint',
        )}
      >
        {state === 'done' ? <Check className="size-4" /> : number}
      </span>
      <section className="rounded-xl border border-line bg-surface shadow-card">
        <h2>
          <button
            type="button"
            aria-expanded={open}
            aria-controls={id}
            onClick={onToggle}
            className="flex w-full items-center gap-3 rounded-xl px-4 py-3 text-left sm:px-5"
          >
            <span className="min-w-0 flex-1">
              <span className="block text-base font-semibold">
                {title}
                {state === 'done' && <span className="sr-only"> (done)</span>}
              </span>
              <span className="block text-xs font-normal break-words text-ink-soft">{about}</span>
            </span>
            <ChevronDown
              className={classNames(
                'size-4 shrink-0 text-ink-faint transition-transform',
                open && 'rotate-180',
              )}
              aria-hidden
            />
          </button>
        </h2>
        <div id={id} hidden={!open} className="border-t border-line px-4 py-4 sm:px-5">
          {open && children}
        </div>
      </section>
    </li>
  )
}
