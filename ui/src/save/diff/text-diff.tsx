import { useMemo } from 'react'
import { classNames } from '../../components/class-names.ts'
import { type DiffLine, diffLines } from './line-diff.ts'

/** Unchanged lines around a change. */
const context = 3

const marks = { same: ' ', removed: '-', added: '+' }
const looks = { same: '', removed: 'bg-bad-soft', added: 'bg-good-soft' }
const names = { same: '', removed: 'Removed: ', added: 'Added: ' }

/** Differences of two texts by line, with the lines around them. */
export function TextDiff({ before, after }: { before: string; after: string }) {
  const lines = useMemo(() => diffLines(before, after), [before, after])
  const blocks = useMemo(() => blocksOf(lines), [lines])
  return (
    <section
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
      tabIndex={0}
      aria-label="Differences"
      className="max-h-[55dvh] overflow-auto rounded-lg border border-line bg-sunken font-mono text-xs leading-relaxed"
    >
      <table className="w-full border-collapse">
        <tbody>
          {blocks.map((block, number) =>
            block.kind === 'gap' ? (
              <tr key={number} className="bg-hover text-ink-faint">
                <td colSpan={3} className="px-3 py-0.5">
                  {block.count} unchanged {block.count === 1 ? 'line' : 'lines'}
                </td>
              </tr>
            ) : (
              <Line key={number} line={block.line} />
            ),
          )}
        </tbody>
      </table>
    </section>
  )
}

function Line({ line }: { line: DiffLine }) {
  const { kind, text } = line
  return (
    <tr className={looks[kind]}>
      <td className="w-px px-2 text-right text-ink-faint select-none tabular" aria-hidden>
        {kind === 'removed' ? line.before : line.after}
      </td>
      <td
        className={classNames(
          'w-px select-none',
          kind === 'removed' && 'text-bad',
          kind === 'added' && 'text-good',
        )}
      >
        <span aria-hidden>{marks[kind]}</span>
        <span className="sr-only">{names[kind]}</span>
      </td>
      <td className="py-px pr-3 pl-1 break-words whitespace-pre-wrap">{text}</td>
    </tr>
  )
}

type Block =
  | { readonly kind: 'line'; readonly line: DiffLine }
  | { readonly kind: 'gap'; readonly count: number }

function blocksOf(lines: readonly DiffLine[]): readonly Block[] {
  const near = new Set<number>()
  for (const [index, { kind }] of lines.entries())
    if (kind !== 'same') for (let at = index - context; at <= index + context; at++) near.add(at)
  const blocks: Block[] = []
  for (const [index, line] of lines.entries()) {
    if (near.has(index)) {
      blocks.push({ kind: 'line', line })
      continue
    }
    const last = blocks.at(-1)
    if (last?.kind === 'gap') blocks[blocks.length - 1] = { kind: 'gap', count: last.count + 1 }
    else blocks.push({ kind: 'gap', count: 1 })
  }
  return blocks
}
