import { Download, Eraser, MessagesSquare, Plus, SlidersHorizontal } from 'lucide-react'
import { useEffect, useState } from 'react'
import { Button, ButtonLink } from '../../components/action/button.tsx'
import { IconButton } from '../../components/action/icon-button.tsx'
import { Menu } from '../../components/action/menu.tsx'
import { EmptyState } from '../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../components/feedback/error-state.tsx'
import { Skeleton } from '../../components/feedback/skeleton.tsx'
import { toast } from '../../components/feedback/toasts.tsx'
import { Card } from '../../components/layout/card.tsx'
import { Dialog } from '../../components/layout/dialog.tsx'
import { Page } from '../../components/layout/page.tsx'
import { type Chat, ChatProvider, useChat, useCreateChat } from './chat-context.ts'
import { maxPanels } from './chat-store.ts'
import { Composer } from './composer.tsx'
import { saveText } from './model/save-text.ts'
import { jsonTranscript, markdownTranscript } from './model/transcript.ts'
import { PanelView } from './panel.tsx'
import { SettingsForm } from './settings/settings-form.tsx'

/** Chat playground: up to four models side by side, through the gateway. */
export default function ChatPage() {
  const { chat, error, retry } = useCreateChat()
  const [settingsOpen, setSettingsOpen] = useState(false)
  return (
    <Page
      title="Chat"
      about="Ask up to four models at once, with the policies, limits and guards of your clients."
      actions={chat?.listener && <Actions chat={chat} onSettings={() => setSettingsOpen(true)} />}
    >
      {error ? <ErrorState error={error} onRetry={retry} /> : null}
      {!chat && !error && <Skeleton className="h-[60dvh] w-full rounded-xl" />}
      {chat && !chat.listener && <NoListener />}
      {chat?.listener && (
        <ChatProvider value={chat}>
          <Workspace settingsOpen={settingsOpen} onSettingsOpen={setSettingsOpen} />
        </ChatProvider>
      )}
    </Page>
  )
}

function NoListener() {
  return (
    <Card>
      <EmptyState
        icon={MessagesSquare}
        title="No gateway serves models yet"
        action={
          <ButtonLink tone="primary" href="/start">
            Set up the first model
          </ButtonLink>
        }
      >
        The playground calls models as your clients do. Add a provider and a model first.
      </EmptyState>
    </Card>
  )
}

function Workspace({
  settingsOpen,
  onSettingsOpen,
}: {
  settingsOpen: boolean
  onSettingsOpen(open: boolean): void
}) {
  const { state, store, models } = useChat()
  const first = models.kind === 'listed' ? models.names.find((name) => !name.includes('*')) : undefined
  const unset = state.panels.find(({ model }) => model === '')
  useEffect(() => {
    if (first !== undefined && unset) store.setModel(unset.id, first)
  }, [store, first, unset])
  return (
    <div className="grid grid-cols-1 gap-5 xl:grid-cols-[minmax(0,1fr)_20rem]">
      <div className="flex h-[calc(100dvh-15rem)] min-h-96 sm:h-[calc(100dvh-11rem)] sm:min-h-120 min-w-0 flex-col gap-3">
        <div className="flex min-h-0 flex-1 snap-x gap-3 overflow-x-auto pb-1">
          {state.panels.map((panel) => (
            <PanelView key={panel.id} panel={panel} />
          ))}
        </div>
        {!state.separate && <Composer />}
      </div>
      <aside aria-label="Settings" className="max-xl:hidden">
        <Card className="sticky top-17 max-h-[calc(100dvh-11rem)] overflow-y-auto">
          <SettingsForm />
        </Card>
      </aside>
      <Dialog open={settingsOpen} onOpenChange={onSettingsOpen} title="Settings" width="narrow" place="side">
        <SettingsForm />
      </Dialog>
    </div>
  )
}

function Actions({ chat, onSettings }: { chat: Chat; onSettings(): void }) {
  const { store, state, models } = chat
  const isEmpty = state.panels.every(({ turns }) => turns.length === 0)
  const addPanel = () => {
    const names = models.kind === 'listed' ? models.names.filter((name) => !name.includes('*')) : []
    const unused = names.find((name) => state.panels.every(({ model }) => model !== name))
    store.addPanel(unused ?? names[0] ?? '')
  }
  const clear = () => {
    store.clear()
    toast('good', 'Conversations cleared')
  }
  return (
    <>
      <span className="xl:hidden">
        <IconButton icon={SlidersHorizontal} label="Settings" onClick={onSettings} />
      </span>
      <Menu
        trigger={<IconButton icon={Download} label="Export" disabled={isEmpty} />}
        items={[
          {
            kind: 'item',
            label: 'Export as Markdown',
            onSelect: () =>
              saveText('chat.md', 'text/markdown', markdownTranscript(state.panels, state.settings)),
          },
          {
            kind: 'item',
            label: 'Export as JSON',
            onSelect: () =>
              saveText('chat.json', 'application/json', jsonTranscript(state.panels, state.settings)),
          },
        ]}
      />
      <IconButton icon={Eraser} label="Clear conversations" disabled={isEmpty} onClick={clear} />
      <Button icon={Plus} disabled={state.panels.length >= maxPanels} onClick={addPanel}>
        Compare model
      </Button>
    </>
  )
}
