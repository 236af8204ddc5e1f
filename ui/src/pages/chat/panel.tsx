import { X } from 'lucide-react'
import { useEffect, useId, useRef } from 'react'
import { IconButton } from '../../components/action/icon-button.tsx'
import { inputClass } from '../../components/form/input.tsx'
import { useChat } from './chat-context.ts'
import type { Panel } from './chat-store.ts'
import { Composer } from './composer.tsx'
import { AnswerView } from './turns/answer.tsx'
import { ResultView, UserView } from './turns/messages.tsx'
import { Suggestions } from './turns/suggestions.tsx'
import { ToolResults } from './turns/tool-results.tsx'

/** Longest list of names offered to the browser's completion. */
const maxOptions = 500

/** Conversation with one model. */
export function PanelView({ panel }: { panel: Panel }) {
  const { store, state, listener } = useChat()
  const { box, content } = useStickyScroll()
  const last = panel.turns.at(-1)
  return (
    <section
      aria-label={`Conversation with ${panel.model || 'a model'}`}
      className="flex min-w-full flex-1 snap-start flex-col rounded-xl border border-line bg-surface shadow-card sm:min-w-88"
    >
      <header className="flex items-center gap-1 border-b border-line py-2 pr-2 pl-3">
        <ModelInput panel={panel} />
        {state.panels.length > 1 && (
          <IconButton
            icon={X}
            label={`Remove ${panel.model || 'model'}`}
            onClick={() => store.removePanel(panel.id)}
          />
        )}
      </header>
      <div
        ref={box}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label={`Messages of ${panel.model}`}
        className="min-h-0 flex-1 overflow-y-auto px-4 py-4 text-sm -outline-offset-2"
      >
        <div ref={content} className="min-h-full space-y-5">
          {panel.turns.length === 0 && <Suggestions panelId={panel.id} />}
          {panel.turns.map((turn) => {
            if (turn.kind === 'user') return <UserView key={turn.id} turn={turn} />
            if (turn.kind === 'result') return <ResultView key={turn.id} turn={turn} />
            const isLast = turn === last
            return (
              <AnswerView
                key={turn.id}
                answer={turn}
                {...(isLast && listener && { onRetry: () => store.retry(panel.id, listener.gateway) })}
              />
            )
          })}
          <ToolResults panel={panel} />
        </div>
      </div>
      <Announcement panel={panel} />
      {state.separate && (
        <div className="border-t border-line p-2">
          <Composer panelId={panel.id} />
        </div>
      )}
    </section>
  )
}

function ModelInput({ panel }: { panel: Panel }) {
  const { store, models } = useChat()
  const listId = useId()
  const names = models.kind === 'listed' ? models.names.filter((name) => !name.includes('*')) : []
  const patterns = models.kind === 'listed' ? models.names.filter((name) => name.includes('*')) : []
  return (
    <>
      <input
        aria-label="Model"
        list={listId}
        value={panel.model}
        placeholder={patterns[0] ?? 'Model name'}
        spellCheck={false}
        autoComplete="off"
        onFocus={(event) => event.target.select()}
        onChange={(event) => store.setModel(panel.id, event.target.value)}
        className={`${inputClass} border-transparent font-mono shadow-none hover:border-line-strong`}
      />
      <datalist id={listId}>
        {names.slice(0, maxOptions).map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  )
}

/** Announces the end of an answer; the text itself is read in the log. */
function Announcement({ panel }: { panel: Panel }) {
  const last = panel.turns.at(-1)
  const state = last?.kind === 'answer' ? last.run.state : undefined
  return (
    <span role="status" className="sr-only">
      {state === 'done' && `${panel.model} has answered.`}
      {state === 'stopped' && `${panel.model} was stopped.`}
    </span>
  )
}

/** Scrolls to the end of growing content while the reader is there. */
function useStickyScroll() {
  const box = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = box.current
    if (!element || !content.current) return
    let atEnd = true
    const onScroll = () => {
      atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 60
    }
    const observer = new ResizeObserver(() => {
      if (atEnd) element.scrollTop = element.scrollHeight
    })
    observer.observe(content.current)
    element.addEventListener('scroll', onScroll, { passive: true })
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', onScroll)
    }
  }, [])
  return { box, content }
}
