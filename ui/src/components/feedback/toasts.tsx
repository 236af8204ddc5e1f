import { X } from 'lucide-react'
import { Toast } from 'radix-ui'
import { useSyncExternalStore } from 'react'
import { Button } from '../action/button.tsx'
import { classNames } from '../class-names.ts'

type Message = {
  readonly id: number
  readonly tone: 'good' | 'bad'
  readonly text: string
  readonly action?: { readonly label: string; onSelect(): void }
}

let messages: readonly Message[] = []
let lastId = 0
const listeners = new Set<() => void>()
const maxMessages = 4

/** Displays a result for some seconds, optionally with an action such as Undo. */
export function toast(tone: Message['tone'], text: string, action?: Message['action']): void {
  lastId += 1
  publish([...messages.slice(1 - maxMessages), { id: lastId, tone, text, ...(action && { action }) }])
}

/** The place of toasts: once, in the shell. */
export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => messages)
  return (
    <Toast.Provider duration={7_000} swipeDirection="right">
      {shown.map((message) => (
        <ToastItem key={message.id} message={message} />
      ))}
      {/* Above a bar of buttons at the end of the window, which a toast would cover for seconds. */}
      <Toast.Viewport className="fixed right-0 bottom-0 z-60 flex w-full max-w-md flex-col gap-2 p-4 outline-none in-[:has([data-bottom-bar])]:bottom-16" />
    </Toast.Provider>
  )
}

function ToastItem({ message }: { message: Message }) {
  const { id, tone, text, action } = message
  return (
    <Toast.Root
      type={tone === 'bad' ? 'foreground' : 'background'}
      onOpenChange={(open) => open || publish(messages.filter((other) => other.id !== id))}
      className="enter flex items-center gap-3 rounded-lg border border-line bg-surface px-4 py-3 text-sm shadow-high"
    >
      <span
        className={classNames('size-2 shrink-0 rounded-full', tone === 'bad' ? 'bg-bad' : 'bg-good')}
        aria-hidden
      />
      <Toast.Description className="min-w-0 flex-1 break-words">{text}</Toast.Description>
      {action && (
        <Toast.Action asChild altText={action.label}>
          <Button size="small" onClick={action.onSelect}>
            {action.label}
          </Button>
        </Toast.Action>
      )}
      <Toast.Close aria-label="Close" className="rounded p-1 text-ink-faint hover:text-ink">
        <X className="size-3.5" aria-hidden />
      </Toast.Close>
    </Toast.Root>
  )
}

function publish(next: readonly Message[]): void {
  messages = next
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
