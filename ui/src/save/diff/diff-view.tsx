import { useMemo } from 'react'
import { stringify } from 'yaml'
import { TextDiff } from './text-diff.tsx'

/** Differences of two values, as lines of YAML. An absent value is empty. */
export default function DiffView({ before, after }: { before: unknown; after: unknown }) {
  const texts = useMemo(() => [yamlOf(before), yamlOf(after)] as const, [before, after])
  return <TextDiff before={texts[0]} after={texts[1]} />
}

export function yamlOf(value: unknown): string {
  return value === undefined ? '' : stringify(value, { lineWidth: 100 })
}
