import { CornerDownRight } from 'lucide-react'
import type { Turn } from '../model/conversation.ts'

/** Prompt of the user. */
export function UserView({ turn }: { turn: Extract<Turn, { kind: 'user' }> }) {
  return (
    <div className="flex flex-col items-end gap-2">
      {turn.images.length > 0 && (
        <div className="flex flex-wrap justify-end gap-2">
          {turn.images.map((image, index) => (
            <img
              key={index}
              src={image.dataUrl}
              alt={image.name}
              className="max-h-40 max-w-full rounded-lg border border-line"
            />
          ))}
        </div>
      )}
      {turn.text !== '' && (
        <div className="max-w-[85%] rounded-2xl rounded-br-md bg-accent-soft px-3.5 py-2 break-words whitespace-pre-wrap">
          {turn.text}
        </div>
      )}
    </div>
  )
}

/** Result of a tool, entered by the user. */
export function ResultView({ turn }: { turn: Extract<Turn, { kind: 'result' }> }) {
  return (
    <div className="flex gap-2 text-xs text-ink-soft">
      <CornerDownRight className="size-3.5 shrink-0" aria-hidden />
      <pre className="min-w-0 break-words whitespace-pre-wrap">
        <span className="sr-only">Tool result: </span>
        {turn.text}
      </pre>
    </div>
  )
}
