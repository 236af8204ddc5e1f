import { KeyRound, Sparkles } from 'lucide-react'
import { useState } from 'react'
import { useEnteredKey } from '../../../api/entered-key.ts'
import { Button, ButtonLink } from '../../../components/action/button.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input } from '../../../components/form/input.tsx'
import { useChat } from '../chat-context.ts'

const prompts = [
  'Explain how a token bucket limits requests, with a short TypeScript example.',
  'Compare OAuth access tokens and API keys in a table.',
  'My e-mail address is ada@example.com. Repeat it.',
]

/** First prompts of an empty conversation. */
export function Suggestions({ panelId }: { panelId: string }) {
  const { store, state, listener, models } = useChat()
  if (models.kind === 'refused' && models.status === 401) return <KeyRequest />
  return (
    <div className="flex min-h-[50dvh] flex-col items-center justify-center gap-2 text-center">
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

/** Entry of the virtual key that the gateway demands. */
function KeyRequest() {
  const [key, enterKey] = useEnteredKey()
  const [text, setText] = useState('')
  return (
    <EmptyState
      icon={KeyRound}
      title={key === '' ? 'The gateway requires a virtual key' : 'The gateway does not accept this key'}
    >
      <form
        className="mt-3 flex flex-col gap-3 text-left"
        onSubmit={(event) => {
          event.preventDefault()
          enterKey(text)
        }}
      >
        <Field label="Virtual key" help="Stays in the memory of this page. A reload forgets it.">
          {(control) => (
            <Input
              {...control}
              type="password"
              value={text}
              placeholder="tg-…"
              spellCheck={false}
              className="font-mono"
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </Field>
        <span className="flex justify-end gap-2">
          <ButtonLink href="/llm/keys">Create a key</ButtonLink>
          <Button type="submit" tone="primary" disabled={text.trim() === ''}>
            Use this key
          </Button>
        </span>
      </form>
    </EmptyState>
  )
}
