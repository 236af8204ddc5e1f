import { Sparkles } from 'lucide-react'
import { useChat } from '../chat-context.ts'

const prompts = [
  'Explain how a token bucket limits requests, with a short TypeScript example.',
  'Compare OAuth access tokens and API keys in a table.',
  'My e-mail address is ada@example.com. Repeat it.',
]

/** First prompts of an empty conversation. */
export function Suggestions({ panelId }: { panelId: string }) {
  const { store, state, listener, models } = useChat()
  if (models.kind === 'refused') return null
  return (
    <div className="flex h-full min-h-44 flex-col items-center justify-center gap-2 text-center">
      <Sparkles className="size-5 text-ink-faint" aria-hidden />
      <p className="text-sm text-ink-soft">Type a message, or start with one of these</p>
      <ul className="mt-1 w-full max-w-md space-y-1.5">
        {prompts.map((text) => (
          <li key={text}>
            <button
              type="button"
              onClick={() =>
                listener &&
                store.prompt({ text, images: [] }, listener.gateway, state.separate ? panelId : undefined)
              }
              className="w-full rounded-lg border border-line px-3 py-2 text-left text-xs text-ink-soft hover:bg-hover hover:text-ink"
            >
              {text}
            </button>
          </li>
        ))}
      </ul>
    </div>
  )
}
