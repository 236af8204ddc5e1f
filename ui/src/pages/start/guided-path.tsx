import { type ReactNode, useRef, useState } from 'react'
import { SkeletonLines } from '../../components/feedback/skeleton.tsx'
import { StepCard } from './step-card.tsx'

export type GuidedStep = {
  readonly id: string
  readonly title: string
  /** Undefined until the gateway has answered. */
  readonly done: boolean | undefined
  readonly about: ReactNode
  render(next: () => void): ReactNode
}

/** Steps in order. The first unfinished one is open; the user may open another. */
export function GuidedPath({ label, steps }: { label: string; steps: readonly GuidedStep[] }) {
  const [chosen, setChosen] = useState<string>()
  const first = useRef<string>(undefined)
  if (steps.some(({ done }) => done === undefined)) return <SkeletonLines count={8} />
  const next = steps.find(({ done }) => !done)
  // A finished step stays open until the user moves on: it may display a key once.
  first.current ??= next?.id ?? steps.at(-1)?.id
  const open = chosen ?? first.current
  return (
    <ol aria-label={label} className="max-w-3xl space-y-4">
      {steps.map((step, index) => (
        <StepCard
          key={step.id}
          number={index + 1}
          title={step.title}
          about={step.about}
          state={step.done ? 'done' : step === next ? 'next' : 'later'}
          open={open === step.id}
          onToggle={() => setChosen(open === step.id ? '' : step.id)}
        >
          {step.render(() => setChosen(steps[index + 1]?.id))}
        </StepCard>
      ))}
    </ol>
  )
}
