import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { escapeText, Markup, markup } from '../../../src/report/markup.ts';

describe('escaping', () => {
  test.each([
    ['<script>alert(1)</script>', '&lt;script&gt;alert(1)&lt;/script&gt;'],
    ['" onload="x', '&quot; onload=&quot;x'],
    ["' onload='x", '&#39; onload=&#39;x'],
    ['&lt; is not <', '&amp;lt; is not &lt;'],
    ['RM520\u202eLG-N', 'RM520\ufffdLG-N'],
    ['a\u0000b\u0007c\u009bd', 'a\ufffdb\ufffdc\ufffdd'],
    ['half \ud83d of one', 'half \ufffd of one'],
    ['whole 😀, ü and 中', 'whole 😀, ü and 中'],
    ['two\nlines\tand a tab', 'two\nlines\tand a tab'],
  ])('%j', (text, escaped) => {
    expect(escapeText(text)).toBe(escaped);
  });

  test('leaves nothing of any text that could end an element or an attribute', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const escaped = escapeText(text);
        expect(escaped).not.toMatch(/[<>"']/);
        expect(escaped.replaceAll(/&(?:amp|lt|gt|quot|#39);/g, '')).not.toContain('&');
      }),
    );
  });

  test('happens to every text that is put into a template, and to no markup', () => {
    const name = '<b>"x"</b>';
    expect(
      markup`<p title="${name}">${name}${markup`<i>${1}</i>`}${[markup`<u>`, markup`</u>`]}${undefined}</p>`
        .text,
    ).toBe('<p title="&lt;b&gt;&quot;x&quot;&lt;/b&gt;">&lt;b&gt;&quot;x&quot;&lt;/b&gt;<i>1</i><u></u></p>');
    expect(markup`${new Markup('<hr>')}`.text).toBe('<hr>');
  });
});
