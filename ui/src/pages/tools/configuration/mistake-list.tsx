import { CircleAlert } from 'lucide-react'
import type { FileMistake } from '../../../api/tools/config-file.ts'

const shown = 20

/** The mistakes of the text, with their lines. */
export function MistakeList({ mistakes }: { mistakes: readonly FileMistake[] }) {
  return (
    <div role="status" aria-label="Mistakes">
      {mistakes.length > 0 && (
        <ul className="mt-3 space-y-1.5 rounded-lg bg-bad-soft px-4 py-3 text-sm">
          {mistakes.slice(0, shown).map(({ line, path, message }, index) => (
            <li key={index} className="flex gap-2.5">
              <CircleAlert className="mt-0.5 size-4 shrink-0 text-bad" aria-hidden />
              <span className="min-w-0 break-words">
                {line !== undefined && <b className="font-medium">Line {line}: </b>}
                {path !== '' && <span className="font-mono text-xs">{path} </span>}
                {message}
              </span>
            </li>
          ))}
          {mistakes.length > shown && <li className="text-ink-soft">and {mistakes.length - shown} more</li>}
        </ul>
      )}
    </div>
  )
}
