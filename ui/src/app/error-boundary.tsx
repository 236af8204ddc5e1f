import { RotateCw } from 'lucide-react'
import { Component, type ReactNode } from 'react'
import { Button } from '../components/action/button.tsx'
import { messageOf } from '../components/feedback/error-state.tsx'
import { Notice } from '../components/feedback/notice.tsx'
import { Page } from '../components/layout/page.tsx'

type State = { readonly error?: unknown; readonly address?: string }

/** Displays an error of a page in place of the page. Another address renders again. */
export class ErrorBoundary extends Component<{ children: ReactNode }, State> {
  override state: State = {}

  static getDerivedStateFromError(error: unknown): State {
    return { error, address: location.pathname }
  }

  override render(): ReactNode {
    const { error, address } = this.state
    if (error === undefined || address !== location.pathname) return this.props.children
    return (
      <Page title="This page failed">
        <Notice
          tone="bad"
          title={messageOf(error)}
          action={
            <Button size="small" icon={RotateCw} onClick={() => location.reload()}>
              Reload
            </Button>
          }
        >
          After an update of the gateway, a reload fetches the new console.
        </Notice>
      </Page>
    )
  }
}
