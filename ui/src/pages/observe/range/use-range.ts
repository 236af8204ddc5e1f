import { useEffect, useMemo, useState } from 'react'
import { useSearchParams } from 'wouter'
import { type Range, type RangeChoice, readRange, resolveRange, writeRange } from './time-range.ts'

type RangeState = {
  readonly choice: RangeChoice
  readonly range: Range
  setChoice(choice: RangeChoice): void
  /** Moves the end of a preset to now. */
  refresh(): void
}

const refreshMs = 60_000

/** The time range in the address. Presets up to a day follow the clock while the page is visible. */
export function useRange(defaultId: string): RangeState {
  const [parameters, setParameters] = useSearchParams()
  const [now, setNow] = useState(Date.now)
  const text = ['range', 'from', 'to'].map((name) => parameters.get(name) ?? '').join('|')
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text has all that is read of the parameters
  const choice = useMemo(() => readRange(parameters, defaultId), [text, defaultId])
  const range = useMemo(() => resolveRange(choice, now), [choice, now])
  const follows = choice.kind === 'preset' && choice.preset.lengthMs <= 86_400_000
  useEffect(() => {
    if (!follows) return
    const timer = setInterval(() => document.visibilityState === 'visible' && setNow(Date.now()), refreshMs)
    return () => clearInterval(timer)
  }, [follows])
  return {
    choice,
    range,
    setChoice(next) {
      setNow(Date.now())
      setParameters((current) => {
        const written = writeRange(current, next)
        written.delete('cursor')
        return written
      })
    },
    refresh: () => setNow(Date.now()),
  }
}
